#include <algorithm>

#include "core/layers/batch_edit_internal.h"
#include "core/ops/infer.h"
#include "core/passes/pass.h"

namespace graft::edit {
namespace {

using Ints = std::vector<std::int64_t>;

Tensor ints(const Ints& values) {
  return Tensor::from(Shape{static_cast<std::int64_t>(values.size())}, values);
}

bool gives(Node& node, const Shape& wanted) {
  try {
    infer(node);
  } catch (const Error&) {
    return false;
  }
  return known(node.output()) == wanted;
}

/// The Reshape reads a constant; allowzero does not matter, since no dim is 0.
void set_target(BatchEdit& edit, const Node& node, const Ints& target) {
  Node* const user = own_node(edit, node);
  if (user == nullptr) {
    fail(ErrorKind::unsupported, "set_batch: ", node.label(),
         ", which stands for a function or an older op of the model, holds the batch ",
         edit.probe.batch(), "; export the model with a free batch instead");
  }
  if (user->attributes.has("shape")) return user->attributes.set({"shape", target});
  user->set_input(1, add_ints(edit, *user, target));
}

}  // namespace

Node* own_node(const BatchEdit& edit, const Node& node) {
  for (int i = 0; i < node.output_count(); ++i) {
    const Value* const output = node.output(i);
    const Value* const user = output == nullptr ? nullptr : edit.graph.find(output->name());
    if (user == nullptr) continue;
    Node* const made = user->producer();
    const bool is_same =
        made != nullptr && made->op_type() == node.op_type() && made->domain() == node.domain();
    return is_same ? made : nullptr;
  }
  return nullptr;
}

Value* add_ints(BatchEdit& edit, Node& before, const std::vector<std::int64_t>& values) {
  const Tensor tensor = ints(values);
  Node* const constant = edit.graph.add_node("Constant", "", {}, {edit.graph.unique_name("batch")},
                                             {{"value", tensor}}, &before);
  constant->output()->set_type({DType::i64, SymShape(tensor.shape())});
  return constant->output();
}

Value* grown_ints(BatchEdit& edit, const std::vector<std::int64_t>& values) {
  Graph& grown = edit.probe.grown();
  return grown.add_initializer(grown.unique_name("batch"), ints(values));
}

Value* shape_with_batch(BatchEdit& edit, Node& before, std::vector<std::int64_t> dims, int axis) {
  const auto at = static_cast<std::size_t>(axis);
  if (edit.batch) {
    dims[at] = *edit.batch;
    return add_ints(edit, before, dims);
  }
  const auto node = [&](const char* op, std::vector<Value*> inputs, Attributes attributes) {
    Value* const output = edit.graph
                              .add_node(op, "", inputs, {edit.graph.unique_name("batch")},
                                        std::move(attributes), &before)
                              ->output();
    output->set_type({DType::i64, SymShape{Dim()}});
    return output;
  };
  Value* const shape = node("Shape", {passes::required_inputs(edit.graph).front()}, {});
  std::vector<Value*> parts;
  const Ints left(dims.begin(), dims.begin() + axis);
  const Ints right(dims.begin() + axis + 1, dims.end());
  if (!left.empty()) parts.push_back(add_ints(edit, before, left));
  parts.push_back(node("Gather", {shape, add_ints(edit, before, {0})}, {{"axis", 0}}));
  if (!right.empty()) parts.push_back(add_ints(edit, before, right));
  return node("Concat", parts, {{"axis", 0}});
}

bool free_target(BatchEdit& edit, Node& node) {
  const Value* const old_output = edit.probe.old().find(node.output()->name());
  const std::optional<BatchAxis> from = edit.probe.axis_of(node.input(0));
  const Tensor given = constant_of(node.input(1));
  if (!from || old_output == nullptr) return true;
  if (!given.defined()) return false;
  const Shape old_shape = old_output->known_shape();
  const std::optional<BatchAxis> to = reshaped_batch_axis(
      edit.probe.old_shape(node.input(0)), *from, old_shape, edit.probe.batch(), to_int64(given));
  if (!to) return true;  // inference says what does not fit
  edit.probe.set_outer(node.output(), to->outer);
  Ints wanted = old_shape.dims();
  std::int64_t& grown = wanted[static_cast<std::size_t>(to->axis)];
  grown = checked_multiply(grown, BatchProbe::kGrowth);
  if (gives(node, Shape(wanted))) return true;
  node.set_input(1, grown_ints(edit, wanted));
  Ints target = old_shape.dims();
  std::int64_t& open = target[static_cast<std::size_t>(to->axis)];
  open = edit.batch ? checked_multiply(open / edit.probe.batch(), *edit.batch) : -1;
  set_target(edit, node, target);
  return true;
}

void free_shape(BatchEdit& edit, Node& node, int index) {
  const Tensor given = constant_of(node.input(index));
  const std::optional<BatchAxis> from = edit.probe.axis_of(node.input(0));
  if (!given.defined() || !from) return;
  Ints dims = to_int64(given);
  const int axis = from->axis + static_cast<int>(dims.size()) - known(node.input(0))->rank();
  if (axis < 0 || dims[static_cast<std::size_t>(axis)] != edit.probe.batch()) return;
  Node* const user = own_node(edit, node);
  if (user == nullptr || user->input(index) == nullptr) return;
  const Ints literal = dims;
  dims[static_cast<std::size_t>(axis)] = BatchProbe::kGrowth * edit.probe.batch();
  node.set_input(index, grown_ints(edit, dims));
  user->set_input(index, shape_with_batch(edit, *user, literal, axis));
}

}  // namespace graft::edit
