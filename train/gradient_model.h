#pragma once

#include <vector>

#include "core/graph/model.h"
#include "core/tensor/datum.h"

namespace graft {

/// A copy of the model, in the newest form and for inputs of the types of these, whose Gradient ops
/// (ai.onnx.preview.training) are lowered to ordinary nodes, so that a Session runs it. A model
/// without such ops is copied as it is. `inputs`: one a required input, in order.
/// Throws what autograd::lower_gradient_ops throws.
Model model_with_gradients(const Model& model, const std::vector<Datum>& inputs);

}  // namespace graft
