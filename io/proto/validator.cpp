#include "io/proto/validator.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/error.h"
#include "io/proto/graph_validator.h"

namespace graft::onnx {
namespace {

std::string_view canonical(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

void check_header(const pb::ModelProto& model) {
  if (!model.has_graph()) fail(ErrorKind::model, "the file holds no graph: it is no ONNX model");
  if (model.ir_version() < 1) {
    fail(ErrorKind::model, "the model's ir_version is ", model.ir_version(), "; wanted 3 to ",
         static_cast<int>(pb::IR_VERSION));
  }
  if (model.ir_version() > pb::IR_VERSION) {
    fail(ErrorKind::unsupported, "the model's ir_version ", model.ir_version(),
         " is newer than the newest known, ", static_cast<int>(pb::IR_VERSION));
  }
  if (model.opset_import().empty()) {
    fail(ErrorKind::model, "the model (ir_version ", model.ir_version(),
         ") imports no opset, so what its ops mean is not said; export it again, or add the import "
         "and convert it with onnx.version_converter");
  }
}

template <class Imports>
void check_opset_imports(const Imports& imports, std::string_view where) {
  std::unordered_map<std::string_view, std::int64_t> versions;
  for (const pb::OperatorSetIdProto& import : imports) {
    const std::int64_t version = import.version();
    if (version < 1 || version > std::numeric_limits<int>::max()) {
      fail(ErrorKind::model, where, " imports version ", version, " of domain '", import.domain(),
           "'");
    }
    const auto [at, is_new] = versions.try_emplace(canonical(import.domain()), version);
    if (!is_new && at->second != version) {
      fail(ErrorKind::model, where, " imports versions ", at->second, " and ", version,
           " of domain '", import.domain(), "'");
    }
  }
}

/// training_info stays as it is, so what it refers to could not follow the model.
bool refers_outside(const pb::GraphProto& graph) {
  const auto attribute_refers = [](const pb::AttributeProto& attribute) {
    return is_external(attribute.t()) || refers_outside(attribute.g()) ||
           std::ranges::any_of(attribute.tensors(), is_external) ||
           std::ranges::any_of(attribute.graphs(), refers_outside);
  };
  return std::ranges::any_of(graph.initializer(), is_external) ||
         std::ranges::any_of(graph.node(), [&](const pb::NodeProto& node) {
           return std::ranges::any_of(node.attribute(), attribute_refers);
         });
}

/// A call names its function by domain, name and overload; the IR has no overloads.
void check_function_names(const pb::ModelProto& model) {
  std::unordered_map<std::string, std::string_view> overloads;
  for (const pb::FunctionProto& function : model.functions()) {
    const std::string name = text("'", function.domain(), "::", function.name(), "'");
    if (function.name().empty()) fail(ErrorKind::model, "function ", name, " has no name");
    const auto [at, is_new] = overloads.try_emplace(name, function.overload());
    if (is_new) continue;
    if (at->second == function.overload()) {
      fail(ErrorKind::model, "function ", name, " is there twice");
    }
    fail(ErrorKind::unsupported, "function ", name, " has two overloads: '", at->second, "' and '",
         function.overload(), "'");
  }
}

}  // namespace

void validate(pb::ModelProto& model, const ExternalReader& external) {
  check_header(model);
  check_function_names(model);
  check_opset_imports(model.opset_import(), "the model");
  for (const pb::TrainingInfoProto& info : model.training_info()) {
    if (refers_outside(info.initialization()) || refers_outside(info.algorithm())) {
      fail(ErrorKind::unsupported, "training_info holds tensors stored outside the model");
    }
  }
  for (pb::FunctionProto& function : *model.mutable_functions()) {
    const std::string where = "function '" + function.domain() + "::" + function.name() + "'";
    check_opset_imports(function.opset_import(), where);
    GraphValidator(where, nullptr, true, external).check(function);
  }
  GraphValidator("graph '" + model.graph().name() + "'", nullptr, false, external)
      .check(*model.mutable_graph());
}

}  // namespace graft::onnx
