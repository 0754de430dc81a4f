#pragma once

#include <memory>
#include <vector>

#include "core/device/device.h"
#include "core/graph/model.h"

namespace graft {

namespace passes {
struct PassLog;
}

/// Whether the initializer, of a graph in newest form, may be a weight that changes between runs:
/// of floats, no scalar, and not the region or the scales of Resize, from which shapes follow.
bool may_be_weight(const Value& initializer);

/// A copy in the form that inference takes: nodes in the newest form, no Dropout. With
/// `weights_change`, what may be a weight is a variable, so that nothing made of it is kept in a
/// plan. `log` gets a record of what passes do. Throws Error{unsupported} that lists the ops that
/// Graft does not know.
Model inference_form(const Model& model, bool weights_change = false,
                     passes::PassLog* log = nullptr);

/// A copy of the graph of a model in that form as it runs for inputs of these types, one a required
/// input, in order: all rewritten, ready to be planned. Nodes whose shapes depend on data are as
/// they were. Throws Error{shape} or Error{type} if the types do not fit the model.
std::unique_ptr<Graph> inference_graph(const Graph& graph, std::vector<ValueType> types,
                                       Device& device, passes::PassLog* log = nullptr);

}  // namespace graft
