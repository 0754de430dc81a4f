#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "core/ops/dynamic.h"

namespace graft {
namespace {

TEST(Unique, EntriesWithoutElementsAreEqual) {
  Graph graph;
  const Node* const node = graph.add_node("Unique", "", {}, {"y"}, {{"axis", 1}});
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  const std::vector<Datum> inputs{Tensor::zeros(DType::f32, {kMany, 4, 0})};
  EXPECT_EQ(call_dynamic(*node, inputs).front().tensor().shape(), (Shape{kMany, 1, 0}));
}

}  // namespace
}  // namespace graft
