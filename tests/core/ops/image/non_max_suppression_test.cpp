#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "core/ops/dynamic.h"

namespace graft {
namespace {

Shape selected(const Shape& boxes, const Shape& scores) {
  Graph graph;
  const Node* const node = graph.add_node("NonMaxSuppression", "", {}, {"y"});
  const std::vector<Datum> inputs{Tensor::zeros(DType::f32, boxes),
                                  Tensor::zeros(DType::f32, scores)};
  return call_dynamic(*node, inputs).front().tensor().shape();
}

TEST(NonMaxSuppression, OfNoBoxesAnyNumberOfBatchesAndClassesIsDoneAtOnce) {
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  EXPECT_EQ(selected({kMany, 0, 4}, {kMany, 1, 0}), (Shape{0, 3}));
  EXPECT_EQ(selected({1, 0, 4}, {1, kMany, 0}), (Shape{0, 3}));
}

}  // namespace
}  // namespace graft
