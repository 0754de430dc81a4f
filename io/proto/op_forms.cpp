#include "io/op_forms.h"

#include <map>

#include "core/base/error.h"
#include "io/proto/op_schemas.h"

namespace graft::onnx {
namespace {

constexpr int kNewest = 28;

std::string letters_of(const std::vector<pb::OpSchema::FormalParameter>& parameters) {
  std::string letters;
  for (const auto& parameter : parameters) {
    switch (parameter.GetOption()) {
      case pb::OpSchema::Single:
        letters += '1';
        break;
      case pb::OpSchema::Optional:
        letters += '?';
        break;
      case pb::OpSchema::Variadic:
        letters += '*';
        break;
    }
  }
  return letters.empty() ? "-" : letters;
}

std::string form(const pb::OpSchema& schema) {
  std::string line = text(schema.Name(), ' ', schema.since_version(), " takes ", schema.min_input(),
                          ' ', letters_of(schema.inputs()), " gives ", schema.min_output(), ' ',
                          letters_of(schema.outputs()), " attributes");
  const std::map<std::string, pb::OpSchema::Attribute> sorted(schema.attributes().begin(),
                                                              schema.attributes().end());
  for (const auto& [name, attribute] : sorted) {
    line += text(' ', name, ':', static_cast<int>(attribute.type), attribute.required ? "!" : "");
  }
  return line;
}

}  // namespace

std::vector<std::string> op_forms(const std::string& op) {
  std::vector<std::string> forms;
  for (int opset = kNewest; opset > 0;) {
    const pb::OpSchema* const schema = OpSchemas::instance().GetSchema(op, opset, "");
    if (schema == nullptr) break;
    if (!schema->Deprecated()) forms.insert(forms.begin(), form(*schema));
    opset = schema->since_version() - 1;
  }
  return forms;
}

}  // namespace graft::onnx
