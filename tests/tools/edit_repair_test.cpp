// What inspect finds, and the commands that it names; adapters as commands.
#include <gmock/gmock.h>

#include "core/graph/frozen.h"
#include "core/ops/builder.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"
#include "tests/train/nets.h"

namespace graft {
namespace {

using nlohmann::json;
using testing::FailsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::run_graft;
using testing::Succeeds;

class EditRepair : public testing::ToolTest {
 protected:
  Outcome edit(const std::string& model, std::vector<std::string> more,
               const std::string& out) const {
    std::vector<std::string> arguments{"edit", model};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--out", path(out)});
    return run_graft(arguments);
  }
  static std::string notes(const std::string& model) { return run_graft({"inspect", model}).out; }
  static std::size_t trainable(const std::string& model) {
    return json::parse(run_graft({"inspect", model, "--json"}).out)["trainable"].size();
  }

  /// As an exporter leaves a Conv, a BatchNormalization, a table and its transpose, and a Softmax.
  std::string write_harmed() const {
    Model model;
    model.set_opset("", 17);
    Graph& graph = model.graph();
    Builder builder(graph);
    const auto weight = [&](const char* name, const Tensor& tensor) {
      return builder.expr(graph.add_initializer(name, tensor));
    };
    const Tensor table = test::random_tensor({10, 400}, 1);
    Tensor turned = Tensor::empty(DType::f32, {400, 10});
    for (std::size_t i = 0; i < 4000; ++i) {
      turned.values<float>()[i % 400 * 10 + i / 400] = table.values<float>()[i];
    }
    const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 1, 12, 12}}));
    const Expr y = call("Conv", {x, weight("onnx::Conv_7", test::random_tensor({4, 1, 3, 3}, 2)),
                                 weight("onnx::Conv_8", test::random_tensor({4}, 3))});
    const Expr flat = call("Flatten", {call("Relu", {y})});
    const Expr scores = matmul(flat, weight("turned", turned));
    const Expr mixed = matmul(matmul(scores, weight("table.weight", table)), weight("w", turned));
    const Expr shares = call("Softmax", {mixed}, {{"axis", -1}});
    graph.rename(shares.value(), "shares");
    graph.add_output(shares.value());
    onnx::save(model, path("harmed.onnx"));
    return path("harmed.onnx");
  }
};

TEST_F(EditRepair, CuresWhatInspectFinds) {
  const std::string harmed = write_harmed();
  const std::string found = notes(harmed);
  EXPECT_THAT(found, HasSubstr("edit MODEL --strip-probabilities --out OUT"));
  EXPECT_THAT(found, HasSubstr("edit MODEL --unfuse-bn --calibrate DATA --out OUT"));
  EXPECT_THAT(found, HasSubstr("'table.weight', 'turned', 'w' hold one matrix: written several"));
  EXPECT_THAT(found, HasSubstr("edit MODEL --tie --out OUT"));
  const Outcome done =
      edit(harmed, {"--strip-probabilities", "--tie", "--calibrate", write_mnist(), "--unfuse-bn"},
           "ok");
  ASSERT_THAT(done, Succeeds());
  EXPECT_THAT(done.out, HasSubstr("cut off Softmax node"));
  EXPECT_THAT(done.out, HasSubstr("'turned' is the transpose of 'table.weight' from now on"));
  EXPECT_THAT(done.out, HasSubstr("a BatchNormalization behind 1 layers: onnx::Conv_7"));
  EXPECT_THAT(notes(path("ok")), Not(HasSubstr("note")));
  ASSERT_THAT(edit(path("ok"), {"--dropout", "onnx::Conv_7=0.2"}, "x"),
              FailsWith(1, "matches none"));
  ASSERT_THAT(edit(path("ok"), {"--dropout", "relu=0.2", "--bn", ".*=fixed"}, "x"), Succeeds());
  EXPECT_THAT(run_graft({"train", path("x"), "--data", write_mnist(), "--epochs", "1", "--no-run",
                         "--out", path("trained.onnx")}),
              Succeeds());
  const Model before = onnx::load(path("x"));
  const Model after = onnx::load(path("trained.onnx"));
  const auto same = [&](const char* name) {
    return equal_bits(before.graph().find(name)->initializer(),
                      after.graph().find(name)->initializer());
  };
  EXPECT_TRUE(same("onnx::Conv_7.norm.running_mean"));
  EXPECT_FALSE(same("onnx::Conv_7.norm.weight"));
}

TEST_F(EditRepair, AdaptersTrainTravelAndMerge) {
  const std::string base = write_mlp();
  const Outcome adapted = edit(base, {"--lora", "fc[12]", "--rank", "2", "--seed", "3"}, "adapted");
  ASSERT_THAT(adapted, Succeeds());
  EXPECT_THAT(adapted.out, HasSubstr("adapters of rank 2 for 2 layers: fc1, fc2"));
  EXPECT_EQ(trainable(path("adapted")), 4U);
  ASSERT_THAT(run_graft({"train", path("adapted"), "--data", write_mnist(), "--epochs", "1",
                         "--no-run", "--out", path("trained")}),
              Succeeds());
  ASSERT_THAT(run_graft({"edit", path("trained"), "--save-lora", path("a.safetensors")}),
              Succeeds());
  ASSERT_THAT(edit(base, {"--apply-lora", path("a.safetensors")}, "again"), Succeeds());
  ASSERT_THAT(edit(path("again"), {"--merge-lora"}, "merged"), Succeeds());
  EXPECT_EQ(trainable(path("merged")), 6U);
  const auto loss = [&](const std::string& model) {
    const Outcome judged = run_graft({"eval", path(model), "--data", write_mnist(), "--json"});
    return json::parse(judged.out)["loss"].get<double>();
  };
  EXPECT_EQ(loss("again"), loss("trained"));
  EXPECT_NEAR(loss("merged"), loss("trained"), 1e-5);
}

TEST_F(EditRepair, FreezesInTheFile) {
  const std::string base = write_mlp();
  ASSERT_THAT(edit(base, {"--freeze", "fc1.*"}, "frozen"), Succeeds());
  EXPECT_EQ(trainable(path("frozen")), 4U);
  EXPECT_THAT(notes(path("frozen")), HasSubstr("or frozen in the file"));
  ASSERT_THAT(edit(path("frozen"), {"--unfreeze", ".*bias"}, "less"), Succeeds());
  EXPECT_EQ(trainable(path("less")), 5U);
}

TEST_F(EditRepair, RefusesWhatMakesNoSense) {
  const std::string base = write_mlp();
  EXPECT_THAT(edit(base, {"--lora", "fc9"}, "x"), FailsWith(1, "none of 3 layers: 'fc1', 'fc2'"));
  EXPECT_THAT(edit(base, {"--merge-lora"}, "x"), FailsWith(1, "no adapter to merge"));
  EXPECT_THAT(edit(base, {"--tie"}, "x"), FailsWith(1, "no matrix is written twice"));
  EXPECT_THAT(edit(base, {"--strip-probabilities"}, "x"), FailsWith(1, "no output ends in them"));
  EXPECT_THAT(edit(base, {"--unfuse-bn"}, "x"), FailsWith(1, "--calibrate is missing"));
  EXPECT_THAT(edit(base, {"--unfuse-bn", "--calibrate", write_mnist()}, "x"),
              FailsWith(1, "no layer is meant; there are: 'fc1'"));
  EXPECT_THAT(edit(base, {"--bn", "fc1"}, "x"), FailsWith(1, "wanted RE=POLICY"));
  EXPECT_THAT(edit(base, {"--bn", ".*=moving"}, "x"), FailsWith(1, "train, fixed, frozen"));
  EXPECT_THAT(edit(base, {"--dropout", "fc1=much"}, "x"), FailsWith(1, "'much' is no number"));
  for (const char* option : {"--freeze", "--unfreeze"}) {
    const Outcome none = edit(base, {option, "nope"}, "x");
    EXPECT_THAT(none, FailsWith(1, "'nope' matches none"));
    EXPECT_EQ(none.out, "") << "half a line";
  }
  EXPECT_THAT(run_graft({"edit", base, "--tie"}), FailsWith(1, "--out is missing"));
  EXPECT_THAT(run_graft({"edit", base, "--save-lora", path("a.safetensors")}),
              FailsWith(1, "has no adapters to write"));
}

}  // namespace
}  // namespace graft
