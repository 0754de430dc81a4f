#include "core/ops/through_f32.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/ops/f32_twin.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// The device's Cast of a tensor; empty if it has none.
PreparedKernel find_cast(DType from, DType to, const Shape& shape, Device& device) {
  Graph graph;
  Value* const x = graph.add_input("x", {from, SymShape(shape)});
  const Attributes attributes{{"to", static_cast<int>(to)}};
  Node* const node = graph.add_node("Cast", "", {x}, {"y"}, attributes);
  node->output()->set_type({to, SymShape(shape)});
  return find_kernel(*node, device);
}

bool updates_a_variable(const Node& node) {
  return std::ranges::any_of(OpRegistry::instance().get(node).aliases,
                             [](const Alias& alias) { return alias.kind == AliasKind::state; });
}

/// An operand of a short type, and where its f32 form lies.
struct Converted {
  std::size_t index;
  std::size_t offset;
  PreparedKernel cast;
};

class Call {
 public:
  /// Whether there is a kernel for everything.
  bool prepare(const Node& node, Device& device) {
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      if (!add(node.input(static_cast<int>(i)), i, true, device)) return false;
    }
    for (int i = 0; i < node.output_count(); ++i) {
      if (!add(node.output(i), static_cast<std::size_t>(i), false, device)) return false;
    }
    if (inputs_.empty() && outputs_.empty()) return false;
    const F32Twin twin(node);
    inner_ = find_kernel(twin.node(), device);
    own_ = layout_.reserve_bytes(inner_.workspace_bytes);
    from_.resize(node.inputs().size());
    to_.resize(static_cast<std::size_t>(node.output_count()));
    return static_cast<bool>(inner_.run);
  }

  std::size_t workspace_bytes() const { return layout_.bytes(); }

  void run(const KernelArgs& args) {
    std::ranges::copy(args.inputs, from_.begin());
    std::ranges::copy(args.outputs, to_.begin());
    for (const Converted& one : inputs_) {
      void* const floats = workspace_at<float>(args, one.offset);
      one.cast.run({{&from_[one.index], 1}, {&floats, 1}, nullptr, args.run});
      from_[one.index] = floats;
    }
    for (const Converted& one : outputs_) to_[one.index] = workspace_at<float>(args, one.offset);
    inner_.run({from_, to_, workspace_at<std::byte>(args, own_), args.run});
    for (const Converted& one : outputs_) {
      const void* const floats = to_[one.index];
      one.cast.run({{&floats, 1}, {&args.outputs[one.index], 1}, nullptr, args.run});
    }
  }

 private:
  /// False if the device cannot cast it.
  bool add(const Value* value, std::size_t index, bool is_input, Device& device) {
    if (value == nullptr || !is_short_float(value->dtype())) return true;
    const Shape shape = value->known_shape();
    const DType from = is_input ? value->dtype() : DType::f32;
    const DType to = is_input ? DType::f32 : value->dtype();
    PreparedKernel cast = find_cast(from, to, shape, device);
    if (!cast.run || cast.workspace_bytes != 0) return false;
    const std::size_t offset = layout_.reserve<float>(shape.size());
    (is_input ? inputs_ : outputs_).push_back({index, offset, std::move(cast)});
    return true;
  }

  WorkspaceLayout layout_;
  std::vector<Converted> inputs_;
  std::vector<Converted> outputs_;
  PreparedKernel inner_;
  std::size_t own_ = 0;
  std::vector<const void*> from_;  // of the run that goes on: a plan makes one at a time
  std::vector<void*> to_;
};

}  // namespace

PreparedKernel prepare_through_f32(const Node& node, Device& device) {
  if (updates_a_variable(node)) return {};
  const auto call = std::make_shared<Call>();
  if (!call->prepare(node, device)) return {};
  return {[call](const KernelArgs& args) { call->run(args); }, "as_f32", call->workspace_bytes()};
}

}  // namespace graft
