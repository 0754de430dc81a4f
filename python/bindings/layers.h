#pragma once

#include <graft/layers.h>
#include <nanobind/nanobind.h>

#include <vector>

namespace graft::python {

/// Layers of Python, one after the other: layer objects, and text as `parse_layers` reads it.
/// Throws Error{argument} for anything else.
std::vector<Layer> to_layers(nanobind::handle objects);

}  // namespace graft::python
