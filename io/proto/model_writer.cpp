#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/proto/parse.h"
#include "io/proto/value_info.h"
#include "io/proto/writer.h"

namespace graft::onnx {
namespace {

/// Entries of a file's list, by key; equal keys in their order.
template <class Entry>
class Kept {
 public:
  template <class Key>
  Kept(Repeated<Entry>& list, Key key) : entries_(std::move(list)) {
    list.Clear();
    for (int i = entries_.size(); i-- > 0;) by_key_[key(entries_[i])].push_back(&entries_[i]);
  }

  /// Null when the file has no more of that key.
  const Entry* next(const std::string& key) {
    const auto at = by_key_.find(key);
    if (at == by_key_.end() || at->second.empty()) return nullptr;
    const Entry* const entry = at->second.back();
    at->second.pop_back();
    return entry;
  }

 private:
  Repeated<Entry> entries_;
  std::unordered_map<std::string, std::vector<const Entry*>> by_key_;
};

template <class Proto>
void put_opset_imports(const std::vector<OpsetImport>& imports, Proto& into) {
  Kept<pb::OperatorSetIdProto> kept(*into.mutable_opset_import(),
                                    [](const auto& entry) { return entry.domain(); });
  for (const OpsetImport& import : imports) {
    pb::OperatorSetIdProto& entry = *into.add_opset_import();
    if (const auto* old = kept.next(import.domain)) {
      entry = *old;
    } else {
      entry.set_domain(import.domain);
    }
    entry.set_version(import.version);
  }
}

void put_metadata(const Model& model, pb::ModelProto& into) {
  Kept<pb::StringStringEntryProto> kept(*into.mutable_metadata_props(),
                                        [](const auto& entry) { return entry.key(); });
  for (const auto& [key, value] : model.metadata) {
    pb::StringStringEntryProto& entry = *into.add_metadata_props();
    const auto* const old = kept.next(key);
    if (old != nullptr) entry = *old;
    if (old == nullptr || !key.empty()) entry.set_key(key);
    if (old == nullptr || !value.empty() || entry.has_value()) entry.set_value(value);
  }
}

void put_function(const Function& function, pb::FunctionProto& into) {
  into = unpack<pb::FunctionProto>(function.preserved);
  into.set_name(function.name);
  if (!function.domain.empty() || function.preserved.empty() || into.has_domain()) {
    into.set_domain(function.domain);
  }
  const Graph& body = *function.body;
  if (!body.doc.empty() || into.has_doc_string()) into.set_doc_string(body.doc);
  for (const Value* input : body.inputs()) into.add_input(input->name());
  for (const Value* output : body.outputs()) into.add_output(output->name());
  for (const std::string& attribute : function.attributes) into.add_attribute(attribute);
  for (const Attribute& attribute : function.attribute_defaults) {
    put_attribute(attribute, *into.add_attribute_proto(), nullptr);
  }
  put_opset_imports(function.opset_imports, into);
  const ValueInfos kept = std::move(*into.mutable_value_info());
  into.clear_value_info();
  ValueInfoWriter(body).put_value_infos(kept, *into.mutable_value_info());
  put_nodes(body, *into.mutable_node(), nullptr);
}

/// The first ir_version of the ONNX release that brought an opset. Source: ONNX docs,
/// Versioning.md.
std::int64_t ir_version_for(std::int64_t opset) {
  static constexpr std::array<std::pair<int, int>, 9> kLastOpsets{
      {{8, 3}, {9, 4}, {10, 5}, {11, 6}, {14, 7}, {18, 8}, {20, 9}, {22, 10}, {23, 11}}};
  for (const auto& [last_opset, ir_version] : kLastOpsets) {
    if (opset <= last_opset) return ir_version;
  }
  return opset == 24 ? 12 : 13;
}

/// An initializer that is no input needs version 4, functions need 8.
std::int64_t ir_version_of(const Model& model) {
  const bool is_new = model.preserved.empty();
  std::int64_t version = model.ir_version;
  if (is_new) {
    const std::int64_t suited = ir_version_for(model.opset());
    version = version == Model().ir_version ? suited : std::max(version, suited);
  }
  const bool has_plain_initializer =
      std::ranges::any_of(model.graph().initializers(), [](const Value* value) {
        return !value->is_graph_input() && value->graph().preserved_of(value).tensor.empty();
      });
  if (has_plain_initializer) version = std::max<std::int64_t>(version, 4);
  const bool has_new_function = std::ranges::any_of(
      model.functions, [](const Function& function) { return function.preserved.empty(); });
  return has_new_function ? std::max<std::int64_t>(version, 8) : version;
}

void check_imports(const Graph& graph, const Model& imports) {
  for (const auto& node : graph.nodes()) {
    if (node->domain() != kInternalDomain && imports.opset(node->domain()) == 0) {
      fail(ErrorKind::model, node->label(), " is of domain '", node->domain(),
           "', which the model does not import; call set_opset first");
    }
    for_each_body(*node, [&](const Graph& body) { check_imports(body, imports); });
  }
}

}  // namespace

void put_model(const Model& model, pb::ModelProto& into, ExternalWriter* external) {
  if (model.opset_imports.empty()) {
    fail(ErrorKind::model, "the model imports no opset; call set_opset first");
  }
  check_imports(model.graph(), model);
  into = unpack<pb::ModelProto>(model.preserved);
  into.set_ir_version(ir_version_of(model));
  put_opset_imports(model.opset_imports, into);
  const bool is_new = model.preserved.empty();
  if (!model.producer_name.empty() || into.has_producer_name()) {
    into.set_producer_name(model.producer_name);
  } else if (is_new) {
    into.set_producer_name("graft");
  }
  if (!model.producer_version.empty() || into.has_producer_version()) {
    into.set_producer_version(model.producer_version);
  }
  if (!model.domain.empty() || into.has_domain()) into.set_domain(model.domain);
  if (model.model_version != 0 || into.has_model_version()) {
    into.set_model_version(model.model_version);
  }
  if (!model.doc.empty() || into.has_doc_string()) into.set_doc_string(model.doc);
  put_metadata(model, into);
  for (const Function& function : model.functions) put_function(function, *into.add_functions());
  put_graph(model.graph(), *into.mutable_graph(), external);
}

}  // namespace graft::onnx
