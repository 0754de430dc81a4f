#pragma once

#include "core/graph/model.h"

namespace graft::edit {

/// The tensor of a value of the model's graph that depends on no input: an initializer, or what is
/// computed of such. Throws Error{unsupported}, naming it, where it is not known before a run.
Tensor known_value(const Model& model, const Value& value);

/// The weight that a MatMul, Gemm or Conv multiplies by; of a MatMulNBits of com.microsoft what its
/// packed numbers stand for, [K,N]. Throws as above.
Tensor known_weight(const Model& model, const Node& layer);

}  // namespace graft::edit
