// Each layer that text names, in each opset: it makes nodes that the opset has, or refuses.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/model.h"
#include "core/layers/layer_context.h"
#include "core/layers/parse.h"
#include "core/ops/opset.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Whether the layer goes behind that input; its nodes are then of the opset.
bool goes_behind(const std::string& layer, const ValueType& input, std::int64_t opset) {
  Model model;
  model.set_opset("", opset);
  Graph& graph = model.graph();
  LayerContext context(graph, opset);
  try {
    add_layers(context, parse_layers(layer), graph.add_input("x", input));
  } catch (const Error& error) {
    return error.kind() == ErrorKind::unsupported;  // it says what it needs
  }
  for (const auto& node : graph.nodes()) {
    EXPECT_LE(OpRegistry::instance().get(*node).since.front().version, opset)
        << layer << ": " << node->op_type() << " in opset " << opset;
  }
  return true;
}

TEST(Layers, MakeNodesThatTheOpsetHas) {
  const std::vector<ValueType> inputs{{DType::f32, SymShape(Shape{2, 6, 8, 8})},
                                      {DType::f32, SymShape(Shape{2, 5, 6})},
                                      {DType::f32, SymShape(Shape{2, 6})},
                                      {DType::i64, SymShape(Shape{2, 6})}};
  for (const std::string& usage : layer_usages()) {
    std::string layer = usage.substr(0, usage.find_first_of(":["));
    if (usage.starts_with(layer + ":")) layer += layer == "embedding" ? ":3x2" : ":3";
    if (layer.starts_with("reshape")) layer = "reshape:3x-1";
    for (std::int64_t opset = 7; opset <= kNewestOpset; ++opset) {
      EXPECT_TRUE(std::ranges::any_of(
          inputs, [&](const ValueType& input) { return goes_behind(layer, input, opset); }))
          << layer << " in opset " << opset;
    }
  }
}

}  // namespace
}  // namespace graft
