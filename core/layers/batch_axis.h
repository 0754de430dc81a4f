#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/shape.h"
#include "core/tensor/tensor.h"

namespace graft::edit {

/// Where a shape holds the batch: the dim of `axis` is outer * batch * inner.
struct BatchAxis {
  int axis = 0;
  std::int64_t outer = 1;
};

/// The axis in which two shapes of one value differ, for batches `small` and `large`. Nullopt when
/// there is none, or more than one, or when a dim does not grow as the batch does. `outer` is 1.
std::optional<BatchAxis> find_batch_axis(const Shape& at_small, const Shape& at_large,
                                         std::int64_t small, std::int64_t large);

/// Where the batch is behind a Reshape from `from`, which holds it at `axis`, to `to`; both for
/// `batch`. Where several axes could hold it, as those of length 1 can, it is one that holds
/// nothing else, or one that `target` leaves open (-1); among these, samples are joined before rows
/// of one length ([T,B,D] to [T*B,D]), and rows that are split go to the samples ([T,B,D] to
/// [T,B*h,d]). Then it is the one in the same place. Nullopt when no axis can, and where there are
/// no elements.
std::optional<BatchAxis> reshaped_batch_axis(const Shape& from, const BatchAxis& axis,
                                             const Shape& to, std::int64_t batch,
                                             const std::vector<std::int64_t>& target);

/// The part along `axis` that all parts are equal to, with a dim of 1 there; not defined where they
/// differ, or where elements are no whole bytes (strings, packed integers).
Tensor one_of_equal(const Tensor& tensor, int axis);

}  // namespace graft::edit
