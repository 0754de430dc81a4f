#include "core/runtime/storage.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/ops/alias.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

/// Walks the items in order and gives each output a storage.
class Assigner {
  using ValueIndex = OperandTable::ValueIndex;
  using Item = OperandTable::Item;
  static constexpr ValueIndex kNone = OperandTable::kNone;

 public:
  Assigner(const OperandTable& operands, std::span<const int> order)
      : operands_(operands),
        graph_(operands.graph()),
        order_(order),
        storage_of_(operands.value_count(), -1),
        last_read_(operands.value_count(), -1) {
    count_last_reads();
  }

  StorageMap run(bool binds_outputs) {
    storages_.reserve(order_.size() + graph_.initializers().size());
    for (const Value* initializer : graph_.initializers()) {
      add(index_of(*initializer), {.place = Storage::Place::initializer,
                                   .bytes = initializer->bytes(),
                                   .initializer = initializer});
    }
    int input_index = 0;
    for (const Value* input : passes::required_inputs(graph_)) {
      add(index_of(*input),
          {.place = Storage::Place::input, .bytes = input->bytes(), .input_index = input_index++});
    }
    int step = 0;
    for (const int place : order_) {
      const Item& item = at(operands_.items(), place);
      for (int i = 0; i < static_cast<int>(item.outputs); ++i) place_output(item, i, step);
      if (!item.is_view) ++step;
    }
    for (auto& storage : storages_) storage.last = std::max(storage.last, storage.first);
    if (binds_outputs) give_to_caller();
    return {std::move(storages_), ValueTable<int>(graph_, std::move(storage_of_), -1)};
  }

 private:
  static ValueIndex index_of(const Value& value) { return static_cast<ValueIndex>(value.number()); }
  int& storage_of(ValueIndex value) { return at(storage_of_, value); }
  int storage_of(ValueIndex value) const { return at(storage_of_, value); }

  void give_to_caller() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      Storage& storage = at(storages_, storage_of(index_of(*graph_.outputs()[i])));
      if (storage.place != Storage::Place::arena) continue;
      storage.place = Storage::Place::output;
      storage.output_index = static_cast<int>(i);
    }
  }

  /// last_read_[value]: the step of its last reader, views followed to theirs; the end for outputs.
  void count_last_reads() {
    const auto is_view = [&](int place) { return at(operands_.items(), place).is_view; };
    int step = static_cast<int>(order_.size() - std::ranges::count_if(order_, is_view));
    end_ = step;
    for (const Value* output : graph_.outputs()) at(last_read_, index_of(*output)) = end_;
    for (auto place = order_.rbegin(); place != order_.rend(); ++place) {
      const Item& item = at(operands_.items(), *place);
      const int read = item.is_view ? at(last_read_, operands_.outputs(item)[0]) : --step;
      for (const ValueIndex input : operands_.inputs(item)) {
        if (input == kNone) continue;
        int& last = at(last_read_, input);
        last = std::max(last, read);
      }
    }
  }

  void add(ValueIndex value, const Storage& storage) {
    storages_.push_back(storage);
    storage_of(value) = static_cast<int>(storages_.size()) - 1;
  }

  void share(ValueIndex output, ValueIndex input) {
    storage_of(output) = storage_of(input);
    Storage& storage = at(storages_, storage_of(input));
    storage.last = std::max(storage.last, at(last_read_, output));
  }

  void place_output(const Item& item, int index, int step) {
    const ValueIndex output = operands_.outputs(item)[static_cast<std::size_t>(index)];
    if (output == kNone) return;
    if (const Alias* alias = find_alias(*item.aliases, index, AliasKind::view)) {
      return share(output, operands_.input(item, alias->input));
    }
    if (const Alias* alias = find_alias(*item.aliases, index, AliasKind::state)) {
      const ValueIndex state = operands_.input(item, alias->input);
      if (state != kNone) {
        check_state(*item.node, *item.node->input(alias->input), step);
        return share(output, state);
      }
    }
    for (const Alias& alias : *item.aliases) {
      if (alias.output == index && alias.kind == AliasKind::in_place &&
          may_overwrite(item, alias.input, index, step)) {
        return share(output, operands_.input(item, alias.input));
      }
    }
    add(output,
        {.bytes = operands_.output(output).bytes, .first = step, .last = at(last_read_, output)});
  }

  bool may_overwrite(const Item& item, int input_index, int output_index, int step) const {
    const ValueIndex input = operands_.input(item, input_index);
    if (input == kNone) return false;
    const std::span<const ValueIndex> inputs = operands_.inputs(item);
    const std::span<const ValueIndex> outputs = operands_.outputs(item);
    const int index = storage_of(input);
    const Storage& storage = at(storages_, index);
    if (storage.place != Storage::Place::arena || storage.last > step) return false;
    // As many bytes in fewer elements: those of the input are read again and again.
    const OperandTable::Output& from = operands_.output(input);
    const OperandTable::Output& to = operands_.output(at(outputs, output_index));
    if (from.bytes != to.bytes || storage.bytes != to.bytes || from.elements != to.elements) {
      return false;
    }
    // Another operand or an earlier output in the same memory would be overwritten while read.
    const auto lies_there = [&](ValueIndex value) {
      return value != kNone && storage_of(value) == index;
    };
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      if (i != input_index && lies_there(at(inputs, i))) return false;
    }
    return std::ranges::none_of(outputs.first(static_cast<std::size_t>(output_index)), lies_there);
  }

  void check_state(const Node& node, const Value& state, int step) const {
    if (!state.is_initializer()) {
      fail(ErrorKind::model, node.label(), ": '", state.name(), "' is no variable to update");
    }
    const int last = at(last_read_, index_of(state));
    if (last > step && last < end_) {
      fail(ErrorKind::model, node.label(), ": variable '", state.name(),
           "' is read after its update");
    }
  }

  const OperandTable& operands_;
  const Graph& graph_;
  std::span<const int> order_;
  std::vector<Storage> storages_;
  // By value.
  std::vector<int> storage_of_;
  std::vector<int> last_read_;
  int end_ = 0;
};

}  // namespace

std::vector<const Node*> kernel_nodes(const Graph& graph) {
  std::vector<const Node*> nodes;
  nodes.reserve(graph.node_count());
  for (const auto& node : graph.nodes()) {
    if (!is_view(*node)) nodes.push_back(node.get());
  }
  return nodes;
}

StorageMap assign_storage(const Graph& graph, bool binds_outputs) {
  const OperandTable operands(graph);
  return assign_storage(operands, operands.given_order(), binds_outputs);
}

StorageMap assign_storage(const OperandTable& operands, std::span<const int> order,
                          bool binds_outputs) {
  return Assigner(operands, order).run(binds_outputs);
}

}  // namespace graft
