#pragma once

#include <optional>

#include "core/base/shape.h"
#include "core/graph/graph.h"

namespace graft::passes {

// Questions that passes ask about the neighbourhood of a value.

/// The node that alone reads the value, which is no output of the graph; null if there is none.
Node* only_reader(const Value* value);

/// The number of a one-element constant.
std::optional<double> scalar_of(const Value* value);

/// The shape if it is known as a whole.
std::optional<Shape> shape_of(const Value* value);

/// Attributes are f32: whether one holds the number as ops on elements of this type see it.
bool fits_attribute(double number, DType dtype);

/// Whether both have shapes that are known and the same.
bool have_one_shape(const Value* a, const Value* b);

/// Where the value is x times or by a constant, or a constant times x, and has the shape of x: goes
/// on to x, and `factor` takes in the constant.
bool skip_factor(Value*& value, double& factor);

}  // namespace graft::passes
