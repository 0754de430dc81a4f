#pragma once

#include <cstdint>
#include <span>

#include "core/tensor/tensor.h"

namespace graft {

// Cuts and joins of tensors on the CPU, strings included: for what runs between plans. All results
// are copies. Throw Error{unsupported} for types of less than a byte, Error{shape} for an axis that
// is not in [0, rank) or entries that are not there, Error{argument} for a tensor of nothing.

/// `length` entries of `axis` from `start` on.
Tensor narrow(const Tensor& tensor, int axis, std::int64_t start, std::int64_t length);

/// Entry `index` of `axis`; the axis goes.
Tensor select(const Tensor& tensor, int axis, std::int64_t index);

/// Lists of entries along an axis must not grow beyond what data justify: a tensor without elements
/// may have 2^60 entries. Throws Error{unsupported} if there are over a million more than elements.
void check_entries(const Tensor& tensor, int axis);

/// Joins along an axis that all tensors have. Throws Error{shape} or Error{type} if they do not
/// fit, Error{argument} if there are none.
Tensor concat(std::span<const Tensor> tensors, int axis);

/// Joins along a new axis, which stands at `axis` of the result, in [0, rank]. Throws as `concat`.
Tensor stack(std::span<const Tensor> tensors, int axis);

}  // namespace graft
