#include "tests/fuzz/models/small_models.h"

#include <algorithm>
#include <cmath>

#include "core/ops/registry.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

constexpr std::int64_t kMostElements = 1 << 15;
/// Allocations beyond this fail at once.
constexpr std::int64_t kImpossible = std::int64_t{1} << 40;

/// What numbers may come to together.
struct Bound {
  std::int64_t product;
  /// Of a shape, which is refused; of turns of a loop, they would have no end.
  bool may_be_impossible;
};
constexpr Bound kOfShapes{1 << 16, true};
constexpr Bound kWithLoops{64, false};

bool are_small(const std::vector<std::int64_t>& numbers, const Bound& most) {
  std::int64_t product = 1;
  for (const std::int64_t number : numbers) {
    const bool impossible = number > kImpossible || number < -kImpossible;
    if (number == 0 || (impossible && most.may_be_impossible)) continue;
    if (impossible) return false;
    if (__builtin_mul_overflow(product, std::abs(number), &product) || product > most.product)
      return false;
  }
  return true;
}

bool is_small(const Tensor& tensor, const Bound& most) {
  if (tensor.size() > kMostElements) return false;
  if (!is_integer(tensor.dtype()) || tensor.size() > 8) return true;
  std::vector<std::int64_t> numbers;
  for (const double value : to_double(tensor)) numbers.push_back(static_cast<std::int64_t>(value));
  return are_small(numbers, most);
}

bool is_small(const Attribute& attribute, const Bound& most) {
  if (const auto* one = std::get_if<std::int64_t>(&attribute.value)) {
    return are_small({*one}, most);
  }
  if (const auto* many = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
    return are_small(*many, most);
  }
  const auto* const tensor = std::get_if<Tensor>(&attribute.value);
  return tensor == nullptr || is_small(*tensor, most);
}

template <class Test>
bool any_node(const Graph& graph, const Test& test) {
  return std::ranges::any_of(graph.nodes(), [&](const auto& node) {
    bool found = test(*node);
    for_each_body(*node, [&](const Graph& body) { found = found || any_node(body, test); });
    return found;
  });
}

bool is_small(const Graph& graph, const Bound& most) {
  const auto small_tensor = [&](const Value* value) {
    return is_small(value->initializer(), most);
  };
  if (!std::ranges::all_of(graph.initializers(), small_tensor)) return false;
  for (const auto& node : graph.nodes()) {
    if (!std::ranges::all_of(node->attributes,
                             [&](const Attribute& one) { return is_small(one, most); })) {
      return false;
    }
    bool small = true;
    for_each_body(*node, [&](const Graph& body) { small = small && is_small(body, most); });
    if (!small) return false;
  }
  return true;
}

/// Whether a Range may count by floats that are large.
bool counts_far(const Graph& graph) {
  constexpr double kFar = 1e4;
  const auto is_far = [](const Value* value) {
    if (!is_float(value->dtype()) || value->initializer().size() != 1) return false;
    return std::abs(to_double(value->initializer()).front()) > kFar;
  };
  return any_node(graph, [](const Node& node) { return node.op_type() == "Range"; }) &&
         std::ranges::any_of(graph.initializers(), is_far);
}

/// An exponent of infinity makes much of what is next to 1.
bool is_wild(const Attribute& attribute) {
  constexpr float kMost = 1e3F;
  const auto is_far = [](float number) { return !(std::abs(number) <= kMost); };
  if (const auto* one = std::get_if<float>(&attribute.value)) return is_far(*one);
  const auto* const many = std::get_if<std::vector<float>>(&attribute.value);
  return many != nullptr && std::ranges::any_of(*many, is_far);
}

/// A small error in an input may become a large one of an output.
bool jumps(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def == nullptr || def->is_dynamic || def->draws != Draws::nothing) return true;
  const auto is_rounded = [](const Value* value) {
    return value != nullptr && (value->dtype() == DType::f16 || value->dtype() == DType::bf16);
  };
  for (const std::string_view op : {"Round",
                                    "Floor",
                                    "Ceil",
                                    "Sign",
                                    "Mod",
                                    "Cast",
                                    "CastLike",
                                    "TopK",
                                    "ArgMax",
                                    "ArgMin",
                                    "Less",
                                    "LessOrEqual",
                                    "Greater",
                                    "GreaterOrEqual",
                                    "Equal",
                                    "Hardmax",
                                    "RoiAlign",
                                    "QuantizeLinear",
                                    "DynamicQuantizeLinear",
                                    "Resize",
                                    "Upsample",
                                    "GridSample",
                                    "MaxPool",
                                    "ThresholdedRelu",
                                    "Shrink",
                                    "IsInf",
                                    "IsNaN",
                                    "Tan",
                                    "Atanh",
                                    "LpNormalization",
                                    "MeanVarianceNormalization",
                                    "Not",
                                    "Scatter"}) {
    if (node.op_type() == op) return true;
  }
  return std::ranges::any_of(node.inputs(), is_rounded) || is_rounded(node.output(0)) ||
         std::ranges::any_of(node.attributes, is_wild) || node.domain() == "ai.onnx.ml";
}

bool has_kink(const Node& node) {
  constexpr std::string_view kKinks[] = {
      "Abs",       "Celu",      "Clip", "Elu",  "GlobalMaxPool", "HardSigmoid",    "HardSwish",
      "LeakyRelu", "LRN",       "Max",  "Min",  "PRelu",         "ReduceL1",       "ReduceL2",
      "ReduceMax", "ReduceMin", "Relu", "Selu", "Sqrt",          "LpNormalization"};
  return std::ranges::find(kKinks, node.op_type()) != std::end(kKinks);
}

}  // namespace

bool is_small(const Graph& graph) {
  const bool loops = any_node(
      graph, [](const Node& node) { return node.op_type() == "Loop" || node.op_type() == "Scan"; });
  const bool endless =
      any_node(graph, [](const Node& node) { return node.is("Loop") && node.input(0) == nullptr; });
  return !endless && !counts_far(graph) && is_small(graph, loops ? kWithLoops : kOfShapes);
}

bool rounds_only(const Graph& graph) {
  return !any_node(graph, jumps);
}

bool is_smooth(const Graph& graph) {
  return rounds_only(graph) && !any_node(graph, has_kink);
}

}  // namespace graft::fuzz
