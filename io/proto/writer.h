#pragma once

#include "core/graph/model.h"
#include "io/proto/external_data.h"
#include "io/proto/onnx_proto.h"

// From the IR to messages: each function starts from what reader.h left in `preserved` and fills in
// what the IR holds. `external` may be null: then all data goes into the message.
namespace graft::onnx {

/// Throws Error{argument} if an attribute made in memory has no value to write.
void put_attribute(const Attribute& attribute, pb::AttributeProto& into, ExternalWriter* external);

void put_graph(const Graph& graph, pb::GraphProto& into, ExternalWriter* external);

/// Throws Error{model} for a node of the internal domain.
void put_nodes(const Graph& graph, Repeated<pb::NodeProto>& into, ExternalWriter* external);

/// Throws Error{model} also if an op's domain is not imported.
void put_model(const Model& model, pb::ModelProto& into, ExternalWriter* external);

}  // namespace graft::onnx
