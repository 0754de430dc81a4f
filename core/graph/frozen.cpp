#include "core/graph/frozen.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/closest.h"
#include "core/base/regex.h"

namespace graft::edit {
namespace {

constexpr std::string_view kKey = "graft.frozen";

bool is_statistic(const Value& value) {
  constexpr int kFirst = 3;
  return std::ranges::any_of(value.uses(), [](const Use& use) {
    return use.index >= kFirst && use.node->is("BatchNormalization");
  });
}

/// A statistic that is a buffer follows the batches (so exporters call it), a constant does not.
void give_role(Value& value) {
  value.role = is_statistic(value) ? Role::constant : Role::buffer;
}

bool holds_floats(const Node& constant) {
  const Attributes& attributes = constant.attributes;
  if (!attributes.has("value"))
    return attributes.has("value_float") || attributes.has("value_floats");
  return is_float(attributes.get_tensor("value").dtype());
}

/// What may train: an initializer, or what becomes one when a model is made ready to.
bool is_weight(const Value& value) {
  if (value.is_initializer()) return is_float(value.dtype());
  const Node* const node = value.producer();
  if (node == nullptr || value.output_index() != 0) return false;
  if (node->is("Constant")) return holds_floats(*node);
  const Value* const source = node->input(0);
  return node->is("Identity") && source != nullptr && source->is_initializer() &&
         is_float(source->dtype());
}

std::vector<Value*> weights_of(const Graph& graph) {
  std::vector<Value*> values = graph.initializers();
  for (const auto& node : graph.nodes()) {
    if (node->output() != nullptr) values.push_back(node->output());
  }
  std::erase_if(values, [](const Value* value) { return !is_weight(*value); });
  return values;
}

[[noreturn]] void refuse(std::string_view who, std::string_view pattern,
                         std::vector<std::string> names, std::string_view kind) {
  constexpr std::size_t kMost = 8;
  const std::size_t count = names.size();
  names.resize(std::min(count, kMost));
  fail(ErrorKind::argument, who, " pattern '", pattern, "' matches none of ", count, ' ', kind,
       names.empty() ? "" : ": ", quoted_list(names), count > kMost ? ", ..." : "");
}

}  // namespace

std::vector<std::string> frozen_names(const Model& model) {
  std::vector<std::string> names;
  for (const auto& [key, lines] : model.metadata) {
    if (key != kKey) continue;
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', at), lines.size());
      if (end > at) names.push_back(lines.substr(at, end - at));
      at = end + 1;
    }
  }
  return names;
}

void set_frozen_names(Model& model, const std::vector<std::string>& names) {
  const auto entry =
      std::ranges::find(model.metadata, kKey, &std::pair<std::string, std::string>::first);
  if (names.empty()) {
    if (entry != model.metadata.end()) model.metadata.erase(entry);
    return;
  }
  std::string lines;
  for (const std::string& name : names) lines += (lines.empty() ? "" : "\n") + name;
  if (entry == model.metadata.end()) {
    model.metadata.emplace_back(kKey, std::move(lines));
  } else {
    entry->second = std::move(lines);
  }
}

std::size_t freeze(Model& model, const std::function<bool(const Value&)>& is_wanted) {
  std::vector<std::string> names = frozen_names(model);
  const std::unordered_set<std::string> known(names.begin(), names.end());
  for (Value* const value : weights_of(model.graph())) {
    if (!is_wanted(*value)) continue;
    give_role(*value);
    if (!known.contains(value->name())) names.push_back(value->name());
  }
  set_frozen_names(model, names);
  return names.size() - known.size();
}

std::size_t freeze(Model& model, std::string_view pattern) {
  const Regex wanted(pattern);
  bool found = false;
  const std::size_t count = freeze(model, [&](const Value& value) {
    const bool matches = wanted.full_match(value.name());
    found |= matches;
    return matches;
  });
  if (found) return count;
  std::vector<std::string> names;
  for (const Value* value : weights_of(model.graph())) names.push_back(value->name());
  refuse("freeze", pattern, std::move(names), "weights");
}

std::size_t unfreeze(Model& model, const std::function<bool(const Value&)>& is_wanted) {
  std::vector<std::string> names = frozen_names(model);
  const std::size_t before = names.size();
  std::erase_if(names, [&](const std::string& name) {
    Value* const value = model.graph().find(name);
    if (value == nullptr || !is_wanted(*value)) return false;
    value->role = Role::unknown;
    return true;
  });
  if (names.size() != before) set_frozen_names(model, names);
  return before - names.size();
}

std::size_t unfreeze(Model& model, std::string_view pattern) {
  const Regex wanted(pattern);
  const std::size_t count =
      unfreeze(model, [&](const Value& value) { return wanted.full_match(value.name()); });
  if (count == 0) refuse("unfreeze", pattern, frozen_names(model), "frozen weights");
  return count;
}

void forget_frozen(Model& model) {
  std::vector<std::string> names = frozen_names(model);
  const std::size_t before = names.size();
  std::erase_if(names,
                [&](const std::string& name) { return model.graph().find(name) == nullptr; });
  if (names.size() != before) set_frozen_names(model, names);
}

void give_frozen_roles(Model& model) {
  for (const std::string& name : frozen_names(model)) {
    Value* const value = model.graph().find(name);
    if (value != nullptr && is_weight(*value)) give_role(*value);
  }
}

}  // namespace graft::edit
