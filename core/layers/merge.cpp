#include "core/layers/merge.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/base/closest.h"
#include "core/graph/edit.h"
#include "core/graph/frozen.h"
#include "core/layers/change_opset.h"
#include "core/layers/output_types.h"
#include "core/passes/splice_internal.h"

namespace graft::edit {
namespace {

template <class Visit>
void for_each_graph(Graph& graph, const Visit& visit) {
  visit(graph);
  for (const auto& node : graph.nodes()) {
    for_each_body(*node, [&](Graph& body) { for_each_graph(body, visit); });
  }
}

/// The graph's own values, those of bodies left out.
std::vector<Value*> values_of(const Graph& graph) {
  std::set<Value*> seen;
  std::vector<Value*> values;
  const auto add = [&](Value* value) {
    if (value != nullptr && seen.insert(value).second) values.push_back(value);
  };
  for (Value* input : graph.inputs()) add(input);
  for (Value* initializer : graph.initializers()) add(initializer);
  for (const auto& node : graph.nodes()) {
    for (int i = 0; i < node->output_count(); ++i) add(node->output(i));
  }
  return values;
}

std::vector<Value*> all_values(Graph& graph) {
  std::vector<Value*> all;
  for_each_graph(graph, [&](Graph& each) {
    const std::vector<Value*> own = values_of(each);
    all.insert(all.end(), own.begin(), own.end());
  });
  return all;
}

std::vector<std::string> names_of(const std::vector<Value*>& values) {
  std::vector<std::string> names;
  for (const Value* value : values) names.push_back(value->name());
  return names;
}

/// Inputs that a program must give.
std::vector<Value*> open_inputs(const Graph& graph) {
  std::vector<Value*> inputs;
  std::ranges::copy_if(graph.inputs(), std::back_inserter(inputs),
                       [](const Value* input) { return !input->is_initializer(); });
  return inputs;
}

Value* find_in(const std::vector<Value*>& values, const std::string& name, std::string_view what) {
  const auto at = std::ranges::find(values, name, &Value::name);
  if (at != values.end()) return *at;
  fail(ErrorKind::argument, "merge: no ", what, " is called '", name,
       "'; there are: ", quoted_list(names_of(values)));
}

/// Which output each input of the second graph reads.
using Connections = std::map<const Value*, Value*>;

Connections connections_of(const Graph& first, const Graph& second, const MergeOptions& options) {
  const std::vector<Value*> inputs = open_inputs(second);
  Connections found;
  for (const auto& [output, input] : options.connect) {
    Value* const from = find_in(first.outputs(), output, "output of the model");
    if (!found.emplace(find_in(inputs, input, "input of the second model"), from).second) {
      fail(ErrorKind::argument, "merge: input '", input, "' is connected twice");
    }
  }
  if (!options.connect.empty()) return found;
  for (Value* output : first.outputs()) {
    const auto at = std::ranges::find(inputs, output->name(), &Value::name);
    if (at != inputs.end()) found.emplace(*at, output);
  }
  if (!found.empty()) return found;
  if (first.outputs().size() == 1 && inputs.size() == 1) return {{inputs[0], first.outputs()[0]}};
  fail(ErrorKind::argument, "merge: say which output is read by which input; outputs: ",
       quoted_list(names_of(first.outputs())), ", inputs: ", quoted_list(names_of(inputs)));
}

/// Names of dims of the second model, and what they are in the first. Throws where types do not
/// fit.
std::map<std::string, Dim> match_types(const Connections& connections) {
  std::map<std::string, Dim> dims;
  for (const auto& [input, output] : connections) {
    const ValueType& wanted = input->type();
    const ValueType& given = output->type();
    const auto refuse = [&](ErrorKind kind) {
      fail(kind, "merge: output '", output->name(), "' is ", given, ", which input '",
           input->name(), "', ", wanted, ", does not take");
    };
    if (given.dtype != DType::undefined && wanted.dtype != given.dtype) refuse(ErrorKind::type);
    if (!given.shape || !wanted.shape) continue;
    if (given.shape->rank() != wanted.shape->rank()) refuse(ErrorKind::shape);
    for (int axis = 0; axis < given.shape->rank(); ++axis) {
      const Dim& from = (*given.shape)[axis];
      const Dim& to = (*wanted.shape)[axis];
      if (from.is_known() && to.is_known() && !from.same_as(to)) refuse(ErrorKind::shape);
      if (!to.symbol().empty() && (from.is_known() || !from.symbol().empty())) {
        dims.emplace(to.symbol(), from);
      }
    }
  }
  return dims;
}

void rename_dims(Graph& graph, const std::map<std::string, Dim>& dims) {
  if (dims.empty()) return;
  for (Value* value : all_values(graph)) {
    ValueType type = value->type();
    if (!type.shape) continue;
    for (int axis = 0; axis < type.shape->rank(); ++axis) {
      const auto at = dims.find((*type.shape)[axis].symbol());
      if (at != dims.end()) (*type.shape)[axis] = at->second;
    }
    if (!value->is_initializer()) value->set_type(std::move(type));
  }
}

void refuse_clashes(Graph& first, Graph& second, const Connections& connections) {
  std::set<std::string> taken;
  for (const Value* value : all_values(first)) taken.insert(value->name());
  std::vector<std::string> clashes;
  constexpr std::size_t kMost = 5;
  for (const Value* value : all_values(second)) {
    if (connections.contains(value) || !taken.contains(value->name())) continue;
    if (clashes.size() < kMost) clashes.push_back(value->name());
  }
  if (clashes.empty()) return;
  fail(ErrorKind::model, "merge: both models have values of these names: ", quoted_list(clashes),
       "; give the second one a prefix");
}

void merge_imports(Model& model, const Model& next) {
  for (const OpsetImport& import : next.opset_imports) {
    const std::int64_t own = model.opset(import.domain);
    if (own == 0) model.set_opset(import.domain, import.version);
    if (own == 0 || own == import.version) continue;
    fail(ErrorKind::unsupported, "merge: the models import version ", own, " and version ",
         import.version, " of '", import.domain, "'; export one of them anew");
  }
  model.ir_version = std::max(model.ir_version, next.ir_version);
}

void merge_functions(std::vector<Function>& own, std::vector<Function>& more, bool may_share) {
  for (Function& function : more) {
    const bool is_known = std::ranges::any_of(own, [&](const Function& each) {
      return each.domain == function.domain && each.name == function.name;
    });
    if (is_known && !may_share) {
      fail(ErrorKind::model, "merge: both models define the function '", function.domain, ".",
           function.name, "'; rename one");
    }
    if (!is_known) own.push_back(std::move(function));
  }
}

void merge_metadata(Model& model, const Model& next) {
  std::vector<std::string> frozen = frozen_names(model);
  for (std::string& name : frozen_names(next)) frozen.push_back(std::move(name));
  for (const auto& entry : next.metadata) {
    const bool is_known = std::ranges::any_of(
        model.metadata, [&](const auto& own) { return own.first == entry.first; });
    if (!is_known) model.metadata.push_back(entry);
  }
  set_frozen_names(model, frozen);
}

void join(Model& model, Model& next, const MergeOptions& options) {
  Graph& first = model.graph();
  Graph& second = next.graph();
  const Connections connections = connections_of(first, second, options);
  rename_dims(second, match_types(connections));
  if (!options.prefix.empty()) add_prefix(next, options.prefix);
  refuse_clashes(first, second, connections);
  merge_imports(model, next);
  merge_functions(model.functions, next.functions, false);
  merge_functions(model.standard_functions, next.standard_functions, true);
  merge_metadata(model, next);
  std::vector<Value*> arguments;
  for (Value* input : second.inputs()) {
    const auto at = connections.find(input);
    if (at != connections.end()) {
      arguments.push_back(at->second);
    } else {
      // One with a default value becomes a constant.
      arguments.push_back(input->is_initializer() ? nullptr
                                                  : first.add_input(input->name(), input->type()));
    }
  }
  std::vector<Value*> outputs;
  for (Value* output : first.outputs()) {
    const bool is_read = std::ranges::any_of(
        connections, [&](const auto& connection) { return connection.second == output; });
    if (!is_read) outputs.push_back(output);
  }
  const std::vector<Value*> read = first.outputs();
  for (Value* output : passes::splice(second, first, nullptr, arguments, "")) {
    outputs.push_back(output);
  }
  first.set_outputs(outputs);
  for (Value* value : read) {
    first.preserve(value).in_value_info = !value->is_graph_output() && !value->is_graph_input();
  }
}

}  // namespace

void add_prefix(Model& model, std::string_view prefix) {
  if (prefix.empty()) fail(ErrorKind::argument, "add prefix: the prefix is empty");
  std::vector<Value*> values = all_values(model.graph());
  // A name that is taken is longer, and has become another by then.
  std::ranges::stable_sort(values, std::greater<>(),
                           [](const Value* value) { return value->name().size(); });
  for (Value* value : values) {
    value->graph().rename(value, std::string(prefix) + value->name());
  }
  std::vector<std::string> frozen = frozen_names(model);
  for (std::string& name : frozen) name.insert(0, prefix);
  set_frozen_names(model, frozen);
  for_each_graph(model.graph(), [&](Graph& graph) {
    for (const auto& node : graph.nodes()) {
      if (!node->name().empty()) node->set_name(std::string(prefix) + node->name());
    }
  });
}

void merge(Model& model, const Model& next, const MergeOptions& options) {
  const std::int64_t opset = std::max(model.opset(), next.opset());
  const auto bring = [&](Model& one) {
    if (one.opset() != opset) change_opset(one, opset);
  };
  Model copy = model.clone();
  for (Model* one : {&copy, &model}) {  // what throws, throws for the copy
    bring(*one);
    complete_output_types(*one);
    Model behind = next.clone();
    bring(behind);
    join(*one, behind, options);
    complete_output_types(*one);
  }
}

}  // namespace graft::edit
