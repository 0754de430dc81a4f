// run and bench on the inputs that lie in a folder.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "io/npy.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

using nlohmann::json;

class Inputs : public ToolTest {
 protected:
  /// Writes a model that adds two values, the second with a default of 10.
  std::string write_sum() const {
    Model model;
    model.set_opset("", 17);
    Graph& graph = model.graph();
    Value* const a = graph.add_input("a", {DType::f32, SymShape(Shape{2})});
    graph.add_input("b", {DType::f32, SymShape(Shape{2})});
    Value* const b = graph.add_initializer("b", Tensor::full(DType::f32, {2}, 10));
    Node* const sum = graph.add_node("Add", "", {a, b}, {"sum"});
    sum->output()->set_type(a->type());
    graph.add_output(sum->output());
    onnx::save(model, path("sum.onnx"));
    return path("sum.onnx");
  }

  /// What `run --inputs` puts out.
  std::vector<float> run(const std::string& model, const std::string& folder) const {
    const Outcome outcome =
        run_graft({"run", model, "--inputs", path(folder), "--out", path("results")});
    EXPECT_THAT(outcome, Succeeds());
    const Tensor found = npy::load(path("results/sum.npy"));
    const auto values = found.values<const float>();
    return {values.begin(), values.end()};
  }

  std::string make_folder(const std::string& name) const {
    std::filesystem::create_directories(path(name));
    return path(name);
  }
};

TEST_F(Inputs, AreFoundByNumberAndByName) {
  const std::string model = write_sum();
  const Tensor pair = Tensor::from<float>({2}, {1, 2});
  onnx::save_tensor(make_folder("numbers") + "/input_0.pb", pair);
  EXPECT_EQ(run(model, "numbers"), (std::vector<float>{11, 12}));
  npy::save(make_folder("names") + "/a.npy", pair);
  EXPECT_EQ(run(model, "names"), (std::vector<float>{11, 12}));
  onnx::save_tensor(path("names/b.pb"), Tensor::from<float>({2}, {5, 6}), "b");
  EXPECT_EQ(run(model, "names"), (std::vector<float>{6, 8})) << "a new default";
  onnx::save_tensor(make_folder("case/test_data_set_0") + "/input_0.pb", pair, "a");
  EXPECT_EQ(run(model, "case"), (std::vector<float>{11, 12}));
}

TEST_F(Inputs, ThatAreMissingAreNamed) {
  const std::string model = write_sum();
  const auto said = [&](const std::string& folder, int code, const std::string& text) {
    EXPECT_THAT(run_graft({"run", model, "--inputs", path(folder), "--out", path("results")}),
                FailsWith(code, text));
  };
  make_folder("empty");
  said("empty", 1, "no input_0.pb and no file of an input's name, a.npy or .pb");
  said("nowhere", 2, "no such folder");
  npy::save(make_folder("other") + "/b.npy", Tensor::from<float>({2}, {1, 2}));
  said("other", 1, "no data are given of input 'a'");
}

/// The size of the result depends on the data: no plan holds it.
TEST_F(Inputs, BenchMeasuresWhatNoPlanHolds) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape(Shape{4})});
  Node* const places = graph.add_node("NonZero", "", {x}, {"places"});
  graph.add_output(places->output());
  onnx::save(model, path("places.onnx"));
  npy::save(make_folder("data") + "/x.npy", Tensor::from<float>({4}, {0, 1, 0, 2}));
  const std::vector<std::string> bench{
      "bench", path("places.onnx"), "--inputs", path("data"), "--seconds", "0.01", "--json"};
  const Outcome outcome = run_graft(bench);
  ASSERT_THAT(outcome, Succeeds());
  const json line = json::parse(outcome.out);
  EXPECT_GT(line["step_ms_min"], 0.0);
  EXPECT_FALSE(line.contains("arena_bytes")) << "there is no one arena";
  std::vector<std::string> profile = bench;
  profile.emplace_back("--profile");
  EXPECT_THAT(run_graft(profile), FailsWith(1, "no single plan holds this model"));
}

TEST_F(Inputs, BenchTakesAPlansInputs) {
  const std::string model = write_sum();
  npy::save(make_folder("data") + "/a.npy", Tensor::from<float>({2}, {1, 2}));
  const Outcome outcome = run_graft(
      {"bench", model, "--inputs", path("data"), "--seconds", "0.01", "--profile", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_TRUE(json::parse(outcome.out).contains("arena_bytes"));
}

}  // namespace
}  // namespace graft::testing
