#pragma once

#include <vector>

#include "core/ops/builder.h"
#include "optim/optimizer.h"

namespace graft {

/// What a CustomOptimizer's formula gives: the new content of the parameter and of each state, of
/// the types and shapes that they have.
struct Update {
  Expr parameter;
  std::vector<Expr> state = {};
};

/// A parameter and what flowed into it.
struct ParameterGradient {
  Value* parameter;
  Expr gradient;
};

/// Scalars that change each step, shared by all updates.
struct UpdateInputs {
  Expr lr;    ///< f32
  Expr step;  ///< i64, 1 in the first update
};

/// An update node's values.
struct AddedUpdate {
  Value* parameter;           ///< the new content
  std::vector<Value*> state;  ///< before the update, in a fixed order
};

/// Adds the update of the parameter and of its state: zero-filled variables named
/// "<parameter>.momentum", "<parameter>.mean", ... It is one node; for a CustomOptimizer those of
/// its formula, and an Assign for each result. Throws Error{type} if bf16 state is wanted for a
/// parameter that is not f32; Error{argument}, {type} or {shape} if a formula's results are not
/// what Update says; and what the formula throws.
AddedUpdate add_update(Builder& builder, const Optimizer& optimizer, const ParameterGradient& pair,
                       const UpdateInputs& inputs, StatePrecision state = StatePrecision::f32);

}  // namespace graft
