#include "core/passes/draw_masks.h"

#include <map>
#include <tuple>

#include "core/ops/builder.h"
#include "core/passes/replace_node_internal.h"

namespace graft::passes {
namespace {

/// The forward and the backward part of one Dropout have the same, and so one mask.
using Draw = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

Draw draw_of(const Node& node) {
  const Attributes& a = node.attributes;
  return {a.get_int("seed", 0), a.get_int("op_id", 0), a.get_int("twister", 0)};
}

/// Which elements survive: those whose number in [0, 1) is the ratio or more.
Value* add_mask(const Node& node, double ratio, Builder& builder) {
  constexpr std::uint64_t kSeeds = std::uint64_t{1} << 24;  // which f32 tells apart
  const auto [seed, op_id, twister] = draw_of(node);
  const std::uint64_t mixed = static_cast<std::uint64_t>(seed) + static_cast<std::uint64_t>(op_id);
  const auto number = static_cast<float>(mixed % kSeeds);
  const Node* const drawn =
      builder.node("RandomUniform", "", {}, 1,
                   {{"shape", node.input(0)->known_shape().dims()}, {"seed", number}});
  const Expr uniform = builder.expr(drawn->output(0));
  return logical_not(less(uniform, constant_like(uniform, ratio))).value();
}

Expr dropped(const Expr& x, const Expr& mask, double ratio) {
  const Expr zero = constant_like(x, 0.0);
  if (ratio >= 1.0) return expand(zero, x.shape());
  const Expr kept = mask.shape() == x.shape() ? mask : reshape(mask, x.shape());
  return where(kept, x * (1.0 / (1.0 - ratio)), zero);
}

}  // namespace

bool draw_masks(Graph& graph) {
  std::map<Draw, Value*> masks;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node* const node = next;
    next = graph.next(node);
    if (!node->is("DropoutTraining", kInternalDomain)) continue;
    Builder builder(graph, node);
    const double ratio = node->attributes.get_float("ratio", 0.5F);
    Value*& mask = masks[draw_of(*node)];
    if (mask == nullptr) mask = add_mask(*node, ratio, builder);
    replace_node(graph, node, {dropped(builder.expr(node->input(0)), builder.expr(mask), ratio)});
  }
  return !masks.empty();
}

}  // namespace graft::passes
