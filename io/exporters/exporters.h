#pragma once

#include "core/graph/model.h"

// What exporters write beside the graph, and the names that they make: the one place that knows
// them.
namespace graft::onnx {

/// Gives the values of the model's graph the roles that its exporter lets us see. `onnx::load` and
/// `onnx::parse` end with it.
void give_roles(Model& model);

/// What the value's own name and metadata tell; unknown where they tell nothing.
Role role_of(const Value& value);

/// torch.export, PyTorch's present exporter: metadata of value_info says which initializers were
/// parameters and which buffers; what it computed is numbered ("val_7").
Role torch_export_role(const Value& value);

/// torch.jit, PyTorch's older exporter: constants of the source are named after Constant nodes
/// ("/norm/Constant_1_output_0").
Role torch_script_role(const Value& value);

}  // namespace graft::onnx
