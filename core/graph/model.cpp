#include "core/graph/model.h"

namespace graft {
namespace {

std::string_view canonical(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

}  // namespace

std::int64_t Model::opset(std::string_view wanted) const {
  for (const OpsetImport& import : opset_imports) {
    if (canonical(import.domain) == canonical(wanted)) return import.version;
  }
  return 0;
}

void Model::set_opset(std::string_view wanted, std::int64_t version) {
  for (OpsetImport& import : opset_imports) {
    if (canonical(import.domain) == canonical(wanted)) {
      import.version = version;
      return;
    }
  }
  opset_imports.push_back({std::string(wanted), version});
}

namespace {

std::vector<Function> clone_all(const std::vector<Function>& functions) {
  std::vector<Function> copies;
  for (const Function& function : functions) {
    if (function.body == nullptr) {
      fail(ErrorKind::argument, "function '", function.name, "' has no body, wanted a graph");
    }
    copies.push_back({function.domain, function.name, function.attributes,
                      function.attribute_defaults, function.opset_imports, function.body->clone(),
                      function.preserved});
  }
  return copies;
}

}  // namespace

Model Model::clone(ValueMap* map) const {
  Model copy;
  copy.ir_version = ir_version;
  copy.opset_imports = opset_imports;
  copy.producer_name = producer_name;
  copy.producer_version = producer_version;
  copy.domain = domain;
  copy.model_version = model_version;
  copy.doc = doc;
  copy.metadata = metadata;
  copy.preserved = preserved;
  copy.functions = clone_all(functions);
  copy.standard_functions = clone_all(standard_functions);
  copy.graph_ = graph_->clone(map);
  return copy;
}

}  // namespace graft
