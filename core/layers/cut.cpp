#include "core/layers/cut.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "core/base/closest.h"
#include "core/base/regex.h"
#include "core/graph/find.h"
#include "core/layers/weighted_layers.h"

namespace graft::edit {
namespace {

bool is_name(const Graph& graph, std::string_view where) {
  return graph.find(where) != nullptr || std::ranges::any_of(graph.nodes(), [&](const auto& node) {
           return node->name() == where;
         });
}

/// Values whose own name matches, or that of their node, in the order of the graph.
std::vector<Value*> matches(const Graph& graph, const Regex& pattern) {
  std::vector<Value*> found;
  for (const auto& node : graph.nodes()) {
    const bool is_named = pattern.full_match(node->name());
    for (int i = 0; i < node->output_count(); ++i) {
      Value* const output = node->output(i);
      if (output == nullptr) continue;
      if ((is_named && i == 0) || pattern.full_match(output->name())) found.push_back(output);
    }
  }
  return found;
}

std::string cut_by_pattern(const Graph& graph, std::string_view who, std::string_view where) {
  const std::vector<Value*> found = matches(graph, Regex(where));
  if (found.empty()) refuse_unknown(graph, who, where);
  Value* const last = found.back();
  const ValueSet before = needed_values(graph, {}, {last});
  if (std::ranges::all_of(found, [&](const Value* value) { return before.contains(value); })) {
    return last->name();
  }
  std::vector<Value*> read;
  for (const Value* value : found) {
    for_each_read(*value->producer(), [&](Value& each) {
      if (&each.graph() == &graph) read.push_back(&each);
    });
  }
  const ValueSet inner = needed_values(graph, {}, read);
  std::vector<std::string> ends;
  for (const Value* value : found) {
    if (!inner.contains(value)) ends.push_back(value->name());
  }
  fail(ErrorKind::argument, who, ": pattern '", where, "' matches ", found.size(),
       " values, which lead to ", ends.size(), " ends: ", quoted_list(ends), "; name one of them");
}

/// The last values, before `node`, through which alone the outputs are reached.
std::vector<std::string> cuts_before(const Graph& graph, const Node* node) {
  constexpr std::size_t kMost = 3;
  constexpr int kMostTried = 100;
  std::vector<std::string> names;
  int tried = 0;
  bool is_before = false;
  for (auto at = graph.nodes().rbegin(); at != graph.nodes().rend(); ++at) {
    is_before = is_before || at->get() == node;
    const Value* const output = (*at)->output();
    if (!is_before || at->get() == node || output == nullptr) continue;
    if (names.size() == kMost || ++tried > kMostTried) break;
    if (is_only_way(graph, output, graph.outputs())) names.push_back(output->name());
  }
  return names;
}

/// N of "last:N".
std::optional<std::size_t> last_count(std::string_view who, std::string_view where) {
  constexpr std::string_view kLast = "last:";
  if (!where.starts_with(kLast)) return std::nullopt;
  const std::string_view digits = where.substr(kLast.size());
  std::size_t count = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || stop != digits.data() + digits.size() || count == 0) {
    fail(ErrorKind::argument, who, ": '", where, "': wanted last:N with a number above 0");
  }
  return count;
}

}  // namespace

std::string before_last_layers(const Model& model, std::size_t count) {
  if (count == 0) fail(ErrorKind::argument, "last:0: wanted a number of layers above 0");
  const Graph& graph = model.graph();
  const std::vector<WeightedLayer> layers = weighted_layers(graph, graph.outputs());
  if (layers.size() <= count) {
    std::vector<std::string> labels;
    for (const WeightedLayer& layer : layers) labels.push_back(layer.node->output()->name());
    fail(ErrorKind::argument, "last:", count, ": the model has ", layers.size(),
         " layers with weights, wanted more than ", count, labels.empty() ? "" : ": ",
         quoted_list(labels));
  }
  const WeightedLayer& first = layers[layers.size() - count];
  if (first.data != nullptr && is_only_way(graph, first.data, graph.outputs())) {
    return first.data->name();
  }
  const std::vector<std::string> cuts = cuts_before(graph, first.node);
  fail(ErrorKind::argument, "last:", count, ": the last ", count, " layers begin with ",
       first.node->label(), ", but not all goes through what it is applied to",
       cuts.empty() ? "; name a value" : "; all goes through " + quoted_list(cuts));
}

std::string find_cut(const Model& model, std::string_view who, std::string_view where) {
  const Graph& graph = model.graph();
  if (is_name(graph, where)) return find_value(graph, who, where)->name();
  if (const auto count = last_count(who, where)) return before_last_layers(model, *count);
  const bool is_pattern = where.find_first_of("*+?[](){}|^$\\") != std::string_view::npos;
  if (!is_pattern) refuse_unknown(graph, who, where);
  return cut_by_pattern(graph, who, where);
}

}  // namespace graft::edit
