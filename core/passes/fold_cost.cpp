#include "core/base/machine.h"
#include "core/passes/fold_cost_internal.h"

#include <algorithm>
#include <cmath>

#include "core/base/pointer_map.h"
#include "core/ops/cost.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"

namespace graft::passes {
namespace {

/// A string of its own, and what lies round it while a list of strings grows.
constexpr double kBytesAString = 64;
/// A number with its place in the lists of a kernel that counts, sorts or chooses.
constexpr double kBytesAnEntry = 64;
/// Resize makes a table of positions and weights first.
constexpr double kResizeEffort = 8;

double count_of(const Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.size()) : 0;
}

double characters_of(const std::vector<std::string>& strings) {
  double sum = 0;
  for (const std::string& one : strings) sum += static_cast<double>(one.size());
  return sum;
}

double bytes_of_tensor(const Tensor& tensor) {
  if (!tensor.defined()) return 0;
  if (tensor.dtype() != DType::string) return static_cast<double>(tensor.bytes());
  return count_of(tensor) * kBytesAString + characters_of(tensor.strings());
}

class ConstantCount {
 public:
  double count(const Graph& graph) {
    for (const Value* value : graph.initializers()) add(value->initializer());
    for (const auto& node : graph.nodes()) {
      for (const Attribute& attribute : node->attributes) {
        if (const auto* tensor = std::get_if<Tensor>(&attribute.value)) add(*tensor);
      }
      for_each_body(*node, [&](const Graph& body) { count(body); });
    }
    return sum_;
  }

 private:
  void add(const Tensor& tensor) {
    if (!tensor.defined()) return;
    const bool is_text = tensor.dtype() == DType::string;
    const void* const elements =
        is_text ? static_cast<const void*>(&tensor.strings()) : tensor.data();
    if (elements == nullptr) return;  // there are none
    if (seen_.try_emplace(static_cast<const std::byte*>(elements)).is_new) {
      sum_ += bytes_of_tensor(tensor);
    }
  }

  PointerSet<std::byte> seen_;
  double sum_ = 0;
};

/// Whether the time is that of reading the inputs and writing the outputs once. An op that no fact
/// of its row and no name here says so of is folded where it is small.
bool is_linear(const Node& node, const OpDef& def) {
  static constexpr std::string_view kOps[] = {"ArgMax",
                                              "ArgMin",
                                              "Constant",
                                              "ConstantOfShape",
                                              "CumSum",
                                              "DequantizeLinear",
                                              "LayerNormalization",
                                              "LogSoftmax",
                                              "Mod",
                                              "OneHot",
                                              "Pad",
                                              "Pow",
                                              "QuantizeLinear",
                                              "Range",
                                              "ReduceL1",
                                              "ReduceL2",
                                              "ReduceLogSum",
                                              "ReduceLogSumExp",
                                              "ReduceMax",
                                              "ReduceMean",
                                              "ReduceMin",
                                              "ReduceProd",
                                              "ReduceSum",
                                              "ReduceSumSquare",
                                              "ScatterElements",
                                              "ScatterND",
                                              "Softmax",
                                              "Trilu",
                                              "Where"};
  if (def.only_moves || def.reads_only_shapes) return true;
  if (def.layout.kind == LayoutRule::Kind::elementwise) return true;
  if (std::ranges::any_of(def.aliases, [](const Alias& a) { return a.kind == AliasKind::view; })) {
    return true;
  }
  return node.domain().empty() && std::ranges::binary_search(kOps, node.op_type());
}

/// How far an attribute can make a kernel go: numbers count as what they may stand for, such as a
/// window of 10^6 by 10^6.
struct AttributeExtent {
  double operator()(std::int64_t number) const { return std::abs(static_cast<double>(number)); }
  double operator()(const std::vector<std::int64_t>& numbers) const {
    double product = 1;
    for (const std::int64_t number : numbers) product *= std::max((*this)(number), 1.0);
    return product + static_cast<double>(numbers.size());
  }
  double operator()(const std::string& text) const { return static_cast<double>(text.size()); }
  double operator()(const std::vector<std::string>& texts) const {
    return static_cast<double>(texts.size()) + characters_of(texts);
  }
  double operator()(const Tensor& tensor) const { return bytes_of_tensor(tensor); }
  template <class T>
  double operator()(const std::vector<T>& list) const {
    return static_cast<double>(list.size());
  }
  template <class T>
  double operator()(const T&) const {
    return 1;
  }
};

/// Elements of operands, characters of strings, and what attributes ask for.
double extent(const Node& node) {
  double sum = 1;
  for (const Value* input : node.inputs()) {
    const Tensor tensor = constant_of(input);
    sum += count_of(tensor);
    if (tensor.dtype() == DType::string) sum += characters_of(tensor.strings());
  }
  for (const Attribute& attribute : node.attributes) {
    sum += std::visit(AttributeExtent{}, attribute.value);
  }
  return sum;
}

/// A dynamic kernel's results are known when it has run, what it may make is known before.
double dynamic_cost(const Node& node) {
  const auto input = [&](int index) { return constant_of(node.input(index)); };
  if (node.is("StringConcat")) {
    const std::optional<SymShape>& shape = node.output()->shape();
    const std::optional<Shape> known = shape ? shape->known() : std::nullopt;
    if (known) {
      double bytes = kBytesAString;
      for (const int side : {0, 1}) {
        bytes += bytes_of_tensor(input(side)) / std::max(count_of(input(side)), 1.0);
      }
      return static_cast<double>(known->size()) * bytes;
    }
  }
  if (node.is("NonZero")) {
    return count_of(input(0)) * kBytesAnEntry * (1 + input(0).rank());
  }
  if (node.is("Compress") || node.is("Unique")) {
    return (count_of(input(0)) + count_of(input(1))) * kBytesAnEntry + bytes_of_tensor(input(0));
  }
  const double all = extent(node);  // each may meet each other, and make a string of them
  return all * all * kBytesAString;
}

}  // namespace

double constant_bytes(const Graph& graph) {
  return ConstantCount().count(graph);
}

double fold_cost(const Node& node) {
  const OpDef& def = OpRegistry::instance().get(node);
  if (def.is_dynamic) return dynamic_cost(node);
  double touched = 0;
  double all = extent(node);
  for (const Value* input : node.inputs()) touched += bytes_of_tensor(constant_of(input));
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) == nullptr) continue;
    touched += static_cast<double>(node.output(i)->bytes());
    all += static_cast<double>(node.output(i)->known_shape().size());
  }
  if (node.is("Resize")) return touched * kResizeEffort;
  if (is_linear(node, def)) return touched;
  const auto products = static_cast<double>(node_multiply_adds(node).value_or(0));
  return touched + (products > 0 ? products / kMultiplyAddsAByte : all * all);
}

}  // namespace graft::passes
