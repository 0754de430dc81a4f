#include "train/store_quantized.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/graph/edit.h"
#include "core/graph/frozen.h"
#include "core/layers/known_value.h"

namespace graft::edit {
namespace {

/// Values in which no input of the graph takes part: initializers, and what nodes hand on of such.
class Known {
 public:
  explicit Known(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      const bool hands_on = node->is("Constant") || node->is("Identity") || node->is("Transpose") ||
                            node->is("Reshape");
      if (hands_on && std::ranges::all_of(node->inputs(),
                                          [&](const Value* input) { return contains(input); })) {
        outputs_.insert(node->output());
      }
    }
  }

  bool contains(const Value* value) const {
    if (value == nullptr || value->is_graph_input()) return false;
    return value->is_initializer() || outputs_.contains(value);
  }

 private:
  std::unordered_set<const Value*> outputs_;
};

}  // namespace

std::vector<std::string> store_quantized(Model& model) {
  Graph& graph = model.graph();
  remove_unused(graph);  // so that what takes a node's place is read
  const Known known(graph);
  std::vector<std::pair<Value*, Tensor>> found;  // all of it, before anything changes
  for (const auto& node : graph.nodes()) {
    if (!node->is("QuantizeLinear") || node->output() == nullptr) continue;
    if (known.contains(node->input(0)) &&
        std::ranges::all_of(node->inputs(), [&](const Value* input) {
          return input == nullptr || known.contains(input);
        })) {
      found.emplace_back(node->output(), known_value(model, *node->output()));
    }
  }
  std::vector<std::string> names;
  std::vector<Value*> integers;
  for (const auto& [output, tensor] : found) {
    names.push_back(output->name());
    integers.push_back(graph.add_initializer("", tensor));
    integers.back()->role = Role::buffer;
    graph.replace_all_uses(output, integers.back());
  }
  remove_unused(graph);
  forget_frozen(model);
  for (std::size_t i = 0; i < integers.size(); ++i) graph.rename(integers[i], names[i]);
  return names;
}

}  // namespace graft::edit
