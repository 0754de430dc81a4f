// `train --debug-nan`: whoever gets a NaN learns which node made it.
#include <gmock/gmock.h>

#include <limits>

#include "core/ops/builder.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

/// y = sqrt(x w): a NaN where x w is negative.
Model planted() {
  Model model;
  model.set_opset("", 21);
  Graph& graph = model.graph();
  Builder b(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N"), Dim(2)}});
  Value* const w = graph.add_initializer("w", Tensor::full(DType::f32, {2, 1}, 1));
  Value* const h = b.node("MatMul", "", {x, w}, std::vector<std::string>{"h"})->output();
  Node* const root = b.node("Sqrt", "", {h}, std::vector<std::string>{"y"});
  root->set_name("planted");
  graph.add_output(root->output());
  return model;
}

class DebugNanTest : public ToolTest {
 protected:
  Outcome train(const std::vector<std::string>& more) {
    onnx::save(planted(), path("m.onnx"));
    folder_.write("d.csv", "1,1,0.5\n2,1,0.5\n-3,1,0.5\n");
    std::vector<std::string> arguments{
        "train", path("m.onnx"), "--data",  "csv:" + path("d.csv"), "--batch", "3",
        "--out", path("o.onnx"), "--no-run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_graft(arguments);
  }
};

TEST_F(DebugNanTest, WithoutItTheLossIsNamed) {
  EXPECT_THAT(train({}), FailsWith(5, "with debug_nan (--debug-nan) the step names the node"));
}

TEST_F(DebugNanTest, WithItTheNodeIsNamed) {
  const Outcome outcome = train({"--debug-nan"});
  EXPECT_THAT(outcome, FailsWith(5, "Sqrt node 'planted' ("));
  EXPECT_THAT(outcome.error, HasSubstr("made the first NaN: 'y' f32[3,1] in ["));
  EXPECT_THAT(outcome.error, HasSubstr("1 NaN, from 'h' f32[3,1] in [-2, 3]"));
}

TEST_F(DebugNanTest, AWeightThatIsNaNIsNamed) {
  Model model = planted();
  model.graph().find("w")->set_initializer(
      Tensor::from<float>({2, 1}, {1, std::numeric_limits<float>::quiet_NaN()}));
  onnx::save(model, path("m.onnx"));
  folder_.write("d.csv", "1,1,0.5\n2,1,0.5\n");
  const Outcome outcome = run_graft({"train", path("m.onnx"), "--data", "csv:" + path("d.csv"),
                                     "--out", path("o.onnx"), "--no-run", "--debug-nan"});
  EXPECT_THAT(outcome, FailsWith(5, "'w' f32[2,1] in [1, 1], 1 NaN, which MatMul node"));
}

}  // namespace
}  // namespace graft::testing
