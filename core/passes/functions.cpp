#include "core/passes/functions_internal.h"

#include <algorithm>
#include <vector>

namespace graft::passes {
namespace {

/// The attribute of the call, else the function's default; null when there is neither.
const Attribute* find_argument(const Function& function, const Node& call,
                               const std::string& name) {
  if (const Attribute* const given = call.attributes.find(name)) return given;
  const auto at = std::ranges::find(function.attribute_defaults, name, &Attribute::name);
  return at == function.attribute_defaults.end() ? nullptr : &*at;
}

void resolve_references(Graph& body, const Function& function, const Node& call) {
  for (const auto& node : body.nodes()) {
    std::vector<std::string> absent;
    node->attributes.change_each([&](Attribute& attribute) {
      if (attribute.reference.empty()) return;
      const Attribute* const argument = find_argument(function, call, attribute.reference.str());
      if (argument == nullptr) return absent.push_back(attribute.name);
      ValueMap nothing_mapped;
      attribute.value = clone_value(argument->value, nothing_mapped, &body);
      attribute.reference = argument->reference;
    });
    for (const std::string& name : absent) node->attributes.erase(name);
    for_each_body(*node, [&](Graph& inner) { resolve_references(inner, function, call); });
  }
}

}  // namespace

Functions::Functions(const Model& model) {
  for (const auto* const list : {&model.functions, &model.standard_functions}) {
    for (const Function& function : *list) {
      const std::string domain = function.domain == "ai.onnx" ? "" : function.domain;
      by_name_.try_emplace({domain, function.name}, &function);  // the file's own goes first
    }
  }
}

const Function* Functions::find(const Node& node) const {
  const auto at = by_name_.find({node.domain(), node.op_type()});
  return at == by_name_.end() ? nullptr : at->second;
}

std::int64_t opset_of(const Function& function) {
  for (const OpsetImport& import : function.opset_imports) {
    if (import.domain.empty() || import.domain == "ai.onnx") return import.version;
  }
  return 0;
}

std::unique_ptr<Graph> body_for_call(const Function& function, const Node& call) {
  if (call.input_count() > static_cast<int>(function.body->inputs().size())) {
    fail(ErrorKind::model, call.label(), ": function '", function.name, "' has ",
         function.body->inputs().size(), " inputs, the call gives ", call.input_count());
  }
  std::unique_ptr<Graph> body = function.body->clone();
  resolve_references(*body, function, call);
  return body;
}

}  // namespace graft::passes
