#include "core/runtime/storage.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/ops/alias.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

/// Of a value whose shape is known. Makes no Shape.
std::int64_t element_count(const Value& value) {
  std::int64_t count = 1;
  for (const Dim& dim : *value.shape()) count *= dim.value();
  return count;
}

/// Walks the nodes in order and gives each output a storage.
class Assigner {
 public:
  explicit Assigner(const Graph& graph) : graph_(graph), last_read_(graph, -1) {
    map_.of_value = ValueTable<int>(graph, -1);
    count_last_reads();
  }

  StorageMap run(bool binds_outputs) {
    for (const Value* initializer : graph_.initializers()) {
      add(initializer, {.place = Storage::Place::initializer, .initializer = initializer});
    }
    map_.storages.reserve(graph_.node_count() + graph_.initializers().size());
    int input_index = 0;
    for (const Value* input : passes::required_inputs(graph_)) {
      add(input, {.place = Storage::Place::input, .input_index = input_index++});
    }
    int step = 0;
    for (const auto& node : graph_.nodes()) {
      for (int i = 0; i < node->output_count(); ++i) {
        if (node->output(i) != nullptr) place_output(*node, i, step);
      }
      if (!is_view(*node)) ++step;
    }
    for (auto& storage : map_.storages) storage.last = std::max(storage.last, storage.first);
    if (binds_outputs) give_to_caller();
    return std::move(map_);
  }

 private:
  void give_to_caller() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const int index = map_.of_value[*graph_.outputs()[i]];
      Storage& storage = at(map_.storages, index);
      if (storage.place != Storage::Place::arena) continue;
      storage.place = Storage::Place::output;
      storage.output_index = static_cast<int>(i);
    }
  }

  /// last_read_[value]: the step of its last reader, views followed to theirs; the end for outputs.
  void count_last_reads() {
    int step = 0;
    struct Read {
      const Node* node;
      int step;
      bool is_view;
    };
    std::vector<Read> reads;
    reads.reserve(graph_.node_count());
    for (const auto& node : graph_.nodes()) {
      reads.push_back({node.get(), step, is_view(*node)});
      if (!reads.back().is_view) ++step;
    }
    end_ = step;
    for (const Value* output : graph_.outputs()) last_read_[*output] = end_;
    for (auto at = reads.rbegin(); at != reads.rend(); ++at) {
      const int read = at->is_view ? last_read_[*at->node->output(0)] : at->step;
      for (const Value* input : at->node->inputs()) {
        if (input == nullptr) continue;
        int& last = last_read_[*input];
        last = std::max(last, read);
      }
    }
  }

  int add(const Value* value, Storage storage) {
    storage.bytes = value->bytes();
    map_.storages.push_back(storage);
    const int index = static_cast<int>(map_.storages.size()) - 1;
    map_.of_value[*value] = index;
    return index;
  }

  void share(const Value* output, const Value* input) {
    const int index = map_.of_value[*input];
    map_.of_value[*output] = index;
    Storage& storage = at(map_.storages, index);
    storage.last = std::max(storage.last, last_read_[*output]);
  }

  void place_output(const Node& node, int index, int step) {
    const Value* const output = node.output(index);
    const auto& aliases = OpRegistry::instance().get(node).aliases;
    if (aliases.empty()) {
      add(output, {.first = step, .last = last_read_[*output]});
      return;
    }
    if (const Alias* alias = find_alias(node, index, AliasKind::view)) {
      share(output, node.input(alias->input));
      return;
    }
    if (const Alias* alias = find_alias(node, index, AliasKind::state)) {
      const Value* const state = node.input(alias->input);
      if (state != nullptr) {
        check_state(node, *state, step);
        share(output, state);
        return;
      }
    }
    for (const Alias& alias : aliases) {
      if (alias.output == index && alias.kind == AliasKind::in_place &&
          may_overwrite(node, alias.input, *output, step)) {
        share(output, node.input(alias.input));
        return;
      }
    }
    add(output, {.first = step, .last = last_read_[*output]});
  }

  bool may_overwrite(const Node& node, int input_index, const Value& output, int step) const {
    const Value* const input = node.input(input_index);
    if (input == nullptr) return false;
    const int index = map_.of_value[*input];
    const Storage& storage = at(map_.storages, index);
    // As many bytes in fewer elements: those of the input are read again and again.
    if (storage.place != Storage::Place::arena || storage.last > step ||
        input->bytes() != output.bytes() || storage.bytes != output.bytes() ||
        element_count(*input) != element_count(output)) {
      return false;
    }
    // Another operand or an earlier output in the same memory would be overwritten while read.
    for (int i = 0; i < node.input_count(); ++i) {
      if (i != input_index && node.input(i) != nullptr && map_.of_value[*node.input(i)] == index) {
        return false;
      }
    }
    for (int i = 0; i < output.output_index(); ++i) {
      if (node.output(i) != nullptr && map_.of_value[*node.output(i)] == index) return false;
    }
    return true;
  }

  void check_state(const Node& node, const Value& state, int step) const {
    if (!state.is_initializer()) {
      fail(ErrorKind::model, node.label(), ": '", state.name(), "' is no variable to update");
    }
    if (last_read_[state] > step && last_read_[state] < end_) {
      fail(ErrorKind::model, node.label(), ": variable '", state.name(),
           "' is read after its update");
    }
  }

  const Graph& graph_;
  StorageMap map_;
  ValueTable<int> last_read_;
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
  return Assigner(graph).run(binds_outputs);
}

}  // namespace graft
