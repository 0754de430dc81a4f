#include <gmock/gmock.h>

#include "core/runtime/session.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

Tensor eight_channels() {
  return Tensor::from<float>({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
}

TEST(DepthToSpace, OrdersOfDepth) {
  // Depth, column, row: output channel 0 takes channels 0, 2, 4, 6.
  EXPECT_THAT(floats(call_op("DepthToSpace", {eight_channels()}, {{"blocksize", 2}})[0]),
              ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(
      floats(call_op("DepthToSpace", {eight_channels()}, {{"blocksize", 2}, {"mode", "CRD"}})[0]),
      ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(SpaceToDepth, UndoesDepthToSpace) {
  for (const char* mode : {"DCR", "CRD"}) {
    const Attributes attributes{{"blocksize", 2}, {"mode", mode}};
    const Tensor wide = call_op("DepthToSpace", {eight_channels()}, attributes)[0];
    EXPECT_EQ(wide.shape(), (Shape{1, 2, 2, 2}));
    EXPECT_THAT(floats(call_op("SpaceToDepth", {wide}, attributes)[0]),
                ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  }
}

TEST(DepthToSpace, RunsInASession) {
  Model model;
  model.set_opset("", 13);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{1, 8, 1, 1}});
  graph.add_output(graph.add_node("DepthToSpace", "", {x}, {"y"}, {{"blocksize", 2}})->output(0));
  Session session(model, {});
  EXPECT_THAT(floats(session.run(std::vector<Tensor>{eight_channels()})[0]),
              ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
}

TEST(DepthToSpace, RefusesWhatDoesNotFit) {
  const auto kind = [](const Attributes& attributes) {
    return kind_of([&] { call_op("DepthToSpace", {eight_channels()}, attributes); });
  };
  EXPECT_EQ(kind({{"blocksize", 3}}), ErrorKind::shape);
  EXPECT_EQ(kind({{"blocksize", 0}}), ErrorKind::shape);
  EXPECT_EQ(kind({{"blocksize", INT64_MAX}}), ErrorKind::shape);
  EXPECT_EQ(kind({}), ErrorKind::model);
  EXPECT_EQ(kind({{"blocksize", 2}, {"mode", "DRC"}}), ErrorKind::model);
}

}  // namespace
}  // namespace graft
