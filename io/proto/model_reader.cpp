#include <utility>

#include "io/proto/parse.h"
#include "io/proto/reader.h"
#include "io/proto/value_info.h"

namespace graft::onnx {
namespace {

/// The message keeps the spelling of each domain.
template <class Proto>
std::vector<OpsetImport> take_opset_imports(Proto& from) {
  std::vector<OpsetImport> imports;
  for (pb::OperatorSetIdProto& import : *from.mutable_opset_import()) {
    imports.push_back({import.domain(), import.version()});
    import.clear_version();
  }
  return imports;
}

/// The message keeps the keys.
std::vector<std::pair<std::string, std::string>> take_metadata(pb::ModelProto& from) {
  std::vector<std::pair<std::string, std::string>> metadata;
  for (pb::StringStringEntryProto& entry : *from.mutable_metadata_props()) {
    std::string value;
    if (entry.has_value()) value = std::exchange(*entry.mutable_value(), {});
    metadata.emplace_back(entry.key(), std::move(value));
  }
  return metadata;
}

}  // namespace

Function take_function(pb::FunctionProto& from, const ExternalReader& external) {
  Function function;
  if (from.has_domain()) function.domain = std::exchange(*from.mutable_domain(), {});
  function.name = from.name();
  function.attributes.assign(from.attribute().begin(), from.attribute().end());
  function.opset_imports = take_opset_imports(from);
  function.body = std::make_unique<Graph>(function.name);
  Graph& body = *function.body;
  if (from.has_doc_string()) body.doc = std::exchange(*from.mutable_doc_string(), {});
  for (const std::string& input : from.input()) body.add_input(input, {});
  for (pb::AttributeProto& attribute : *from.mutable_attribute_proto()) {
    function.attribute_defaults.push_back(take_attribute(attribute, body, external));
  }
  take_nodes(*from.mutable_node(), body, external);
  for (const std::string& output : from.output()) body.add_output(body.find(output));
  ValueInfoReader infos(body);
  infos.take_value_infos(*from.mutable_value_info());
  infos.finish();
  from.clear_name();
  from.clear_input();
  from.clear_output();
  from.clear_attribute();
  from.clear_attribute_proto();
  function.preserved = pack(from);
  return function;
}

Model take_model(pb::ModelProto& from, const ExternalReader& external) {
  Model model;
  model.ir_version = from.ir_version();
  from.set_ir_version(0);
  model.opset_imports = take_opset_imports(from);
  if (from.has_producer_name())
    model.producer_name = std::exchange(*from.mutable_producer_name(), {});
  if (from.has_producer_version()) {
    model.producer_version = std::exchange(*from.mutable_producer_version(), {});
  }
  if (from.has_domain()) model.domain = std::exchange(*from.mutable_domain(), {});
  if (from.has_model_version()) model.model_version = from.model_version();
  if (from.has_doc_string()) model.doc = std::exchange(*from.mutable_doc_string(), {});
  model.metadata = take_metadata(from);
  for (pb::FunctionProto& function : *from.mutable_functions()) {
    model.functions.push_back(take_function(function, external));
  }
  from.clear_functions();
  take_graph(*from.mutable_graph(), model.graph(), external);
  from.clear_graph();
  model.preserved = pack(from);
  return model;
}

}  // namespace graft::onnx
