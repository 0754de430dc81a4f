#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// "Conv node 'conv1'", or "Conv node producing 'y'" when it has no name: for errors.
std::string label(const pb::NodeProto& node);

/// Puts nodes behind those that they depend on, keeping the order otherwise. `depends[i]` are the
/// positions of the nodes whose outputs node i reads. Throws Error{model} naming the nodes of a
/// cycle; `where` names the graph.
void sort_nodes(Repeated<pb::NodeProto>& nodes, const std::vector<std::vector<int>>& depends,
                std::string_view where);

}  // namespace graft::onnx
