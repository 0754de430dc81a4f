#include <memory>
#include <utility>

#include "io/proto/parse.h"
#include "io/proto/reader.h"
#include "io/proto/tensor_proto.h"

namespace graft::onnx {
namespace {

template <class T, class List>
std::vector<T> take_list(List& list) {
  std::vector<T> values(std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
  list.Clear();
  return values;
}

std::shared_ptr<Graph> take_body(pb::GraphProto& from, Graph& outer,
                                 const ExternalReader& external) {
  auto body = std::make_shared<Graph>("", &outer);
  take_graph(from, *body, external);
  return body;
}

std::vector<Tensor> take_tensors(pb::AttributeProto& from, std::string_view who,
                                 const ExternalReader& external) {
  std::vector<Tensor> tensors;
  for (pb::TensorProto& tensor : *from.mutable_tensors()) {
    tensors.push_back(take_tensor(tensor, who, external));
  }
  return tensors;
}

std::vector<std::shared_ptr<Graph>> take_bodies(pb::AttributeProto& from, Graph& graph,
                                                const ExternalReader& external) {
  std::vector<std::shared_ptr<Graph>> bodies;
  for (pb::GraphProto& body : *from.mutable_graphs()) {
    bodies.push_back(take_body(body, graph, external));
  }
  from.clear_graphs();
  return bodies;
}

AttributeValue take_value(pb::AttributeProto& from, Graph& graph, const ExternalReader& external) {
  const std::string who = text("tensor of attribute '", from.name(), "'");
  switch (from.type()) {
    case pb::AttributeProto::FLOAT:
      return from.f();
    case pb::AttributeProto::INT:
      return from.i();
    case pb::AttributeProto::STRING:
      return from.has_s() ? std::exchange(*from.mutable_s(), {}) : std::string();
    case pb::AttributeProto::TENSOR:
      return take_tensor(*from.mutable_t(), who, external);
    case pb::AttributeProto::GRAPH: {
      auto body = take_body(*from.mutable_g(), graph, external);
      from.clear_g();
      return body;
    }
    case pb::AttributeProto::FLOATS:
      return take_list<float>(*from.mutable_floats());
    case pb::AttributeProto::INTS:
      return take_list<std::int64_t>(*from.mutable_ints());
    case pb::AttributeProto::STRINGS:
      return take_list<std::string>(*from.mutable_strings());
    case pb::AttributeProto::TENSORS:
      return take_tensors(from, who, external);
    case pb::AttributeProto::GRAPHS:
      return take_bodies(from, graph, external);
    default:
      return OpaqueValue{};
  }
}

}  // namespace

Attribute take_attribute(pb::AttributeProto& from, Graph& graph, const ExternalReader& external) {
  // In a function body the value comes from the caller: there is none to take.
  const bool refers = !from.ref_attr_name().empty();
  Attribute attribute(from.name(), refers ? AttributeValue() : take_value(from, graph, external));
  if (refers) attribute.reference = std::exchange(*from.mutable_ref_attr_name(), {});
  from.clear_name();
  attribute.preserved = pack(from);
  return attribute;
}

}  // namespace graft::onnx
