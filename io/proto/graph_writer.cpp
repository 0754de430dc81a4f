#include "io/proto/parse.h"
#include "io/proto/sparse_tensor.h"
#include "io/proto/tensor_proto.h"
#include "io/proto/value_info.h"
#include "io/proto/writer.h"

namespace graft::onnx {
namespace {

void put_node(const Node& node, pb::NodeProto& into, ExternalWriter* external) {
  if (node.domain() == kInternalDomain) {
    fail(ErrorKind::model, node.label(), " is of the internal domain '", kInternalDomain,
         "': no file holds such nodes; save the model, not its training step");
  }
  into = unpack<pb::NodeProto>(node.preserved);
  into.set_op_type(node.op_type());
  if (!node.domain().empty()) into.set_domain(node.domain());
  if (!node.name().empty() || into.has_name()) into.set_name(node.name());
  if (!node.doc.empty() || into.has_doc_string()) into.set_doc_string(node.doc);
  for (const Value* input : node.inputs()) into.add_input(input != nullptr ? input->name() : "");
  for (int i = 0; i < node.output_count(); ++i) {
    into.add_output(node.output(i) != nullptr ? node.output(i)->name() : "");
  }
  for (const Attribute& attribute : node.attributes) {
    put_attribute(attribute, *into.add_attribute(), external);
  }
}

/// True when the file's sparse tensor still says what the initializer holds.
bool is_still_sparse(const Value& value, const pb::GraphProto& kept) {
  return kept.sparse_initializer_size() > 0 &&
         equal_bits(densify(kept.sparse_initializer(0), value.name()), value.initializer());
}

void put_initializer(const Value& value, pb::GraphProto& into, ExternalWriter* external) {
  const auto kept = unpack<pb::GraphProto>(value.graph().preserved_of(&value).tensor);
  if (is_still_sparse(value, kept)) {
    *into.add_sparse_initializer() = kept.sparse_initializer(0);
    into.mutable_sparse_initializer()->rbegin()->mutable_values()->set_name(value.name());
    return;
  }
  pb::TensorProto& tensor = *into.add_initializer();
  tensor = kept.initializer_size() > 0 ? kept.initializer(0) : new_tensor_proto();
  tensor.set_name(value.name());
  put_tensor(value.initializer(), tensor, external);
}

}  // namespace

void put_nodes(const Graph& graph, Repeated<pb::NodeProto>& into, ExternalWriter* external) {
  into.Reserve(static_cast<int>(graph.node_count()));
  for (const auto& node : graph.nodes()) put_node(*node, *into.Add(), external);
}

void put_graph(const Graph& graph, pb::GraphProto& into, ExternalWriter* external) {
  into = unpack<pb::GraphProto>(graph.preserved);
  if (!graph.name.empty() || into.has_name()) into.set_name(graph.name);
  if (!graph.doc.empty() || into.has_doc_string()) into.set_doc_string(graph.doc);
  ValueInfoWriter infos(graph);
  infos.put_inputs(*into.mutable_input());
  infos.put_outputs(*into.mutable_output());
  const ValueInfos kept = std::move(*into.mutable_value_info());
  into.clear_value_info();
  infos.put_value_infos(kept, *into.mutable_value_info());
  for (const Value* initializer : graph.initializers()) {
    put_initializer(*initializer, into, external);
  }
  put_nodes(graph, *into.mutable_node(), external);
}

}  // namespace graft::onnx
