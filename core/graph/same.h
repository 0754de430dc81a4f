#pragma once

#include "core/graph/graph.h"

namespace graft {

/// Whether both have the same name and hold the same, floats by their bits: 0 is not -0. Tensors
/// and what only io reads count as different, bodies as below.
bool are_same(const Attribute& a, const Attribute& b);
/// The same of lists, in their order. What is one list is the same, whatever it holds.
bool are_same(const Attributes& a, const Attributes& b);

/// Whether two bodies compute the same of what enters them, and read nothing else: the same ops
/// with the same attributes, on values of the same types and layouts, whatever their names.
bool are_same(const Graph& a, const Graph& b);

}  // namespace graft
