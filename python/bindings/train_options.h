#pragma once

#include <graft/train.h>
#include <nanobind/nanobind.h>

namespace graft::python {

/// What graft.Trainer was given, by the names of its arguments. Throws Error{type} naming the
/// option whose value is of another type, Error{argument} for names that nothing has.
TrainOptions options_of(const nanobind::dict& given);

}  // namespace graft::python
