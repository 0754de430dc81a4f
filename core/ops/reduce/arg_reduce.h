#pragma once

#include "core/base/error.h"
#include "core/ops/kernels/axis_loop.h"

namespace graft {

/// What ArgMax and ArgMin reduce. Throws Error{shape} if rows have nothing to choose from.
inline AxisLoop arg_reduce_loop(const KernelRequest& request) {
  const AxisLoop loop(request, request.attributes().get_int("axis", 0));
  if (loop.axis == 0 && request.output().shape.size() > 0) {
    fail(ErrorKind::shape, request.node().label(), ": axis of ", request.shape(),
         " is empty and has no extreme");
  }
  return loop;
}

/// Among equal extremes; else the first.
inline bool takes_last_index(const KernelRequest& request) {
  return request.attributes().get_int("select_last_index", 0) != 0;
}

}  // namespace graft
