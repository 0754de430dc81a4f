#pragma once

#include "core/graph/model.h"
#include "io/proto/external_data.h"
#include "io/proto/onnx_proto.h"

// From messages to the IR. Each function takes a message that passed the validator and whose nodes
// are sorted, moves out what the IR holds, and packs what remains into `preserved`. A scalar field
// is left there present and empty where the file had it, so that `put_*` (writer.h) knows which
// fields to write; texts that the user then empties are written empty.
namespace graft::onnx {

/// `graph` encloses the bodies that the attribute may hold.
Attribute take_attribute(pb::AttributeProto& from, Graph& graph, const ExternalReader& external);

/// Fills an empty graph; names of outer values are looked up in its parents.
void take_graph(pb::GraphProto& from, Graph& into, const ExternalReader& external);

/// Appends nodes. Inputs are looked up in scope.
void take_nodes(Repeated<pb::NodeProto>& from, Graph& into, const ExternalReader& external);

Function take_function(pb::FunctionProto& from, const ExternalReader& external);

Model take_model(pb::ModelProto& from, const ExternalReader& external);

}  // namespace graft::onnx
