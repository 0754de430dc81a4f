#include <algorithm>

#include "core/base/at.h"
#include "core/layers/batch_edit_internal.h"
#include "core/ops/infer.h"

namespace graft::edit {
namespace {

bool is_zero(const Tensor& tensor) {
  return tensor.defined() &&
         std::ranges::all_of(to_double(tensor), [](double x) { return x == 0; });
}

/// What stands for one sample of an operand: in the user's model, and in the copy.
struct Source {
  Value* own;
  Value* grown;
};

/// The row that all of `elements` are along the axis; the operand where they differ.
Source one_row(BatchEdit& edit, const Source& operand, const Tensor& elements, int axis) {
  const Tensor row = one_of_equal(elements, axis);
  if (!row.defined()) return operand;
  const std::string name = edit.graph.unique_name(operand.own->name() + "_row");
  Value* const own = edit.graph.add_initializer(name, row);
  own->role = operand.own->role;
  return {own, edit.probe.grown().add_initializer(edit.probe.grown().unique_name(name), row)};
}

bool fits(Node& node) {
  try {
    infer(node);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The operand, or what an Expand, or the exporter for it, repeats for the old batch.
Source source_of(BatchEdit& edit, const Node& node, const Node& user, int index, int axis) {
  const Source operand{user.input(index), node.input(index)};
  if (edit.probe.batch() != 1 && operand.own->is_initializer()) {
    return one_row(edit, operand, operand.own->initializer(), axis);
  }
  const Node* const expand = operand.own->producer();
  if (expand == nullptr || !expand->is("Expand")) return operand;
  Value* const repeated = edit.probe.grown().find(expand->input(0)->name());
  const std::optional<Shape> shape = known(repeated);
  const bool is_one = shape && shape->rank() == known(operand.grown)->rank() && (*shape)[axis] == 1;
  return is_one ? Source{expand->input(0), repeated} : operand;
}

/// Input `index`, which is the same for all samples, is repeated for each.
void repeat(BatchEdit& edit, Node& node, int index, int axis) {
  const Value* const value = node.input(index);
  const std::optional<Shape> shape = known(value);
  if (!shape || axis >= shape->rank() || (*shape)[axis] != edit.probe.batch()) return;
  Node* const user = own_node(edit, node);
  const Source source = user == nullptr ? Source{} : source_of(edit, node, *user, index, axis);
  constexpr std::int64_t kFirstExpand = 8;
  if (user == nullptr || edit.opset < kFirstExpand || (*known(source.grown))[axis] != 1) {
    fail(ErrorKind::unsupported, "set_batch: ", node.label(), " reads '", value->name(), "' ",
         value->type(), ", which is made for a batch of ", edit.probe.batch(),
         "; export the model with a free batch instead");
  }
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(shape->rank()), 1);
  Value* const wide =
      edit.graph
          .add_node("Expand", "", {source.own, shape_with_batch(edit, *user, ones, axis)},
                    {edit.graph.unique_name(source.own->name() + "_for_batch")}, {}, user)
          ->output();
  wide->set_type({source.own->dtype(), std::nullopt});
  user->set_input(index, wide);
  std::vector<std::int64_t> dims = known(source.grown)->dims();
  at(dims, axis) = BatchProbe::kGrowth * edit.probe.batch();
  Graph& grown = edit.probe.grown();
  Value* const target = grown_ints(edit, dims);
  Node* const expand =
      grown.add_node("Expand", "", {source.grown, target}, {wide->name()}, {}, &node);
  infer(*expand);
  node.set_input(index, expand->output());
}

}  // namespace

void free_operands(BatchEdit& edit, Node& node) {
  std::optional<BatchAxis> axis;
  for (const Value* input : node.inputs()) {
    if (const auto found = edit.probe.axis_of(input)) axis = found;
  }
  const Value* const output = edit.probe.old().find(node.output()->name());
  if (!axis || output == nullptr || output->dtype() == DType::undefined) return;
  const int rank = edit.probe.old_shape(output).rank();
  const auto joined = static_cast<int>(node.attributes.get_int("axis", 0));
  if ((joined < 0 ? joined + rank : joined) == axis->axis) return;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!edit.probe.axis_of(node.input(i))) repeat(edit, node, i, axis->axis);
  }
}

void free_repeated(BatchEdit& edit, Node& node) {
  const Tensor data = constant_of(node.input(0));
  Node* const user = own_node(edit, node);
  const Value* const old = edit.probe.old().find(node.output()->name());
  if (user == nullptr || !data.defined() || !known(old) || fits(node)) return;
  const std::int64_t batch = edit.probe.batch();
  const int more = known(old)->rank() - data.rank();
  for (int axis = 0; axis < data.rank(); ++axis) {
    if (data.shape()[axis] != batch || (*known(old))[axis + more] != batch) continue;
    const Source row = one_row(edit, {user->input(0), node.input(0)}, data, axis);
    user->set_input(0, row.own);
    node.set_input(0, row.grown);
    return;
  }
}

/// X is [T,B,...], a state [directions,B,H]; with layout 1 the batch comes first.
void free_states(BatchEdit& edit, Node& node) {
  if (!edit.probe.axis_of(node.input(0))) return;
  const int axis = node.attributes.get_int("layout", 0) == 1 ? 0 : 1;
  for (const int state : {5, 6}) {
    const Value* const value = node.input(state);
    if (value == nullptr || edit.probe.axis_of(value)) continue;
    const Value* const old = edit.probe.old().find(value->name());
    Node* const user = own_node(edit, node);
    if (user != nullptr && old != nullptr && is_zero(constant_of(old))) {
      node.set_input(state, nullptr);
      user->set_input(state, nullptr);
    } else {
      repeat(edit, node, state, axis);
    }
  }
}

}  // namespace graft::edit
