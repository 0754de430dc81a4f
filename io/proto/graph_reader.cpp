#include <utility>

#include "io/proto/parse.h"
#include "io/proto/reader.h"
#include "io/proto/sparse_tensor.h"
#include "io/proto/tensor_proto.h"
#include "io/proto/value_info.h"

namespace graft::onnx {
namespace {

std::vector<Value*> find_inputs(const pb::NodeProto& from, const Graph& graph) {
  std::vector<Value*> inputs;
  for (const std::string& name : from.input()) {
    inputs.push_back(name.empty() ? nullptr : graph.find_in_scope(name));
  }
  return inputs;
}

void take_node(pb::NodeProto& from, Graph& into, const ExternalReader& external) {
  Node* const node = into.add_node(from.op_type(), from.domain(), find_inputs(from, into),
                                   {from.output().begin(), from.output().end()});
  for (pb::AttributeProto& attribute : *from.mutable_attribute()) {
    node->attributes.set(take_attribute(attribute, into, external));
  }
  if (from.has_name()) node->set_name(std::exchange(*from.mutable_name(), {}));
  if (from.has_doc_string()) node->doc = std::exchange(*from.mutable_doc_string(), {});
  // The IR folds "ai.onnx" into "": the spelling stays here.
  if (!node->domain().empty()) from.set_domain("");
  from.clear_op_type();
  from.clear_input();
  from.clear_output();
  from.clear_attribute();
  node->preserved = pack(from);
}

/// `PreservedValue::tensor` is a GraphProto with one initializer or sparse initializer.
void take_initializers(pb::GraphProto& from, Graph& into, const ExternalReader& external) {
  for (pb::TensorProto& tensor : *from.mutable_initializer()) {
    const std::string name = tensor.name();
    Value* const value =
        into.add_initializer(name, take_tensor(tensor, text("initializer '", name, "'"), external));
    tensor.clear_name();
    pb::GraphProto kept;
    *kept.add_initializer() = std::move(tensor);
    into.preserve(value).tensor = pack(kept);
  }
  for (pb::SparseTensorProto& sparse : *from.mutable_sparse_initializer()) {
    const std::string name = sparse.values().name();
    Value* const value =
        into.add_initializer(name, densify(sparse, text("initializer '", name, "'")));
    pb::GraphProto kept;
    *kept.add_sparse_initializer() = std::move(sparse);
    into.preserve(value).tensor = pack(kept);
  }
  from.clear_initializer();
  from.clear_sparse_initializer();
}

}  // namespace

void take_nodes(Repeated<pb::NodeProto>& from, Graph& into, const ExternalReader& external) {
  for (pb::NodeProto& node : from) take_node(node, into, external);
  from.Clear();
}

void take_graph(pb::GraphProto& from, Graph& into, const ExternalReader& external) {
  into.name = from.has_name() ? std::exchange(*from.mutable_name(), {}) : "";
  if (from.has_doc_string()) into.doc = std::exchange(*from.mutable_doc_string(), {});
  ValueInfoReader infos(into);
  infos.take_inputs(*from.mutable_input());
  take_initializers(from, into, external);
  take_nodes(*from.mutable_node(), into, external);
  infos.take_outputs(*from.mutable_output());
  infos.take_value_infos(*from.mutable_value_info());
  infos.finish();
  into.preserved = pack(from);
}

}  // namespace graft::onnx
