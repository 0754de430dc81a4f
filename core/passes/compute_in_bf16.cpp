#include <algorithm>
#include <unordered_map>

#include "core/base/at.h"
#include "core/base/float16.h"
#include "core/ops/builder.h"
#include "core/ops/cost.h"
#include "core/ops/infer.h"
#include "core/ops/kernel.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

bool is_f32(const Value* value) {
  return value != nullptr && value->dtype() == DType::f32;
}

/// The f32 form of a bf16 value.
bool is_rounded(const Value* value) {
  const Node* const producer = value->producer();
  return producer != nullptr && producer->is("Cast") && producer->input(0)->dtype() == DType::bf16;
}

/// The inputs that become bf16.
std::vector<int> chosen_inputs(const Node& node) {
  const std::vector<int>& listed = OpRegistry::instance().get(node).mixed_precision.inputs;
  std::vector<int> chosen;
  for (int i = 0; i < node.input_count(); ++i) {
    const bool is_meant = listed.empty() || std::ranges::find(listed, i) != listed.end();
    if (is_meant && is_f32(node.input(i))) chosen.push_back(i);
  }
  return chosen;
}

/// Whether bf16 saves the product more than the Casts round it cost, forward and backward. What has
/// been rounded already needs none.
bool pays(const Node& product) {
  constexpr std::int64_t kFewMultiplyAdds = std::int64_t{1} << 21;  // some 10 microseconds
  constexpr std::int64_t kLeastForACast = 32;
  const std::int64_t multiply_adds = node_multiply_adds(product).value_or(0);
  std::int64_t casts = 0;
  for (const int i : chosen_inputs(product)) {
    if (!is_rounded(product.input(i))) casts += product.input(i)->known_shape().size();
  }
  return multiply_adds / kLeastForACast >= casts &&
         (multiply_adds >= kFewMultiplyAdds || is_rounded(product.input(0)));
}

/// Whether the device computes the node in bf16 by a kernel of its own.
bool has_kernel(const Node& node, Device& device) {
  Graph graph("bf16");
  std::vector<Value*> inputs;
  for (int i = 0; i < node.input_count(); ++i) {
    const Value* const input = node.input(i);
    inputs.push_back(input == nullptr ? nullptr : graph.add_input(text("x", i), input->type()));
  }
  for (const int i : chosen_inputs(node)) {
    at(inputs, i)->set_type({DType::bf16, node.input(i)->type().shape});
  }
  Builder builder(graph);
  const Node* const twin =
      builder.node(node.op_type(), node.domain(), inputs, node.output_count(), node.attributes);
  return static_cast<bool>(find_kernel(*twin, device).run);
}

/// What trains and is one number for each channel.
bool is_bias(const Value* value) {
  const Shape shape = value->known_shape();
  const auto long_axes = std::ranges::count_if(shape.dims(), [](auto dim) { return dim != 1; });
  return value->is_variable && long_axes <= 1;
}

/// A constant that loses nothing.
bool is_exact(const Value* value) {
  const Tensor constant = constant_of(value);
  if (!constant.defined() || constant.size() != 1) return false;
  const float number = *static_cast<const float*>(constant.data());
  return static_cast<float>(BFloat16(number)) == number;
}

/// On other devices too few ops have kernels for bf16: there, products alone compute in it, and the
/// Casts round them join the chains of their neighbours.
bool takes_followers(const Device& device) {
  return device.kind() == DeviceKind::cpu;
}

/// Whether the node reads rounded numbers and, beside them, only what may well be rounded.
bool follows_rounded(const Node& node, const OpDef& def) {
  const bool takes_bias = def.layout.kind == LayoutRule::Kind::elementwise;
  bool reads_rounded = false;
  for (const int i : chosen_inputs(node)) {
    const Value* const input = node.input(i);
    reads_rounded = reads_rounded || is_rounded(input);
    if (!is_rounded(input) && !(takes_bias && is_bias(input)) && !is_exact(input)) return false;
  }
  return reads_rounded;
}

bool gains(const Node& node, Device& device) {
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def == nullptr || !is_f32(node.output(0))) return false;
  using Kind = MixedPrecision::Kind;
  switch (def->mixed_precision.kind) {
    case Kind::product:
      return pays(node);
    case Kind::product_of_kernel:
      return pays(node) && has_kernel(node, device);
    case Kind::follows:
      return takes_followers(device) && follows_rounded(node, *def);
    case Kind::never:
      break;
  }
  return false;
}

class Narrowing {
 public:
  explicit Narrowing(Graph& graph) : graph_(graph) {}

  void narrow(Node& node) {
    Builder builder(graph_, &node, "bf16/");
    for (const int i : chosen_inputs(node)) {
      node.set_input(i, narrowed(builder, node.input(i)));
    }
    infer(node);
    for (int i = 0; i < node.output_count(); ++i) {
      Value* const output = node.output(i);
      if (output != nullptr && output->dtype() == DType::bf16) widen(node, output);
    }
  }

 private:
  /// One copy serves all readers.
  Value* narrowed(Builder& builder, Value* value) {
    if (is_rounded(value)) return value->producer()->input(0);
    Value*& copy = narrowed_[value];
    if (copy == nullptr) copy = cast(builder.expr(value), DType::bf16).value();
    return copy;
  }

  void widen(Node& node, Value* output) {
    Builder builder(graph_, graph_.next(&node), "bf16/");
    // The cast reads the output only once all others read the cast.
    Value* const wide = cast(builder.expr(output), DType::f32).value();
    graph_.replace_all_uses(output, wide);
    wide->producer()->set_input(0, output);
  }

  Graph& graph_;
  std::unordered_map<Value*, Value*> narrowed_;
};

}  // namespace

bool compute_in_bf16(Graph& graph, Device& device) {
  Narrowing narrowing(graph);
  bool changed = false;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node& node = *next;
    next = graph.next(&node);
    if (!gains(node, device)) continue;
    narrowing.narrow(node);
    changed = true;
  }
  return changed;
}

}  // namespace graft::passes
