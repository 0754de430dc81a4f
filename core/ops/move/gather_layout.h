#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/shape.h"

namespace graft {

/// Gather along an axis: data [outer, dim, inner], indices [count], y [outer, count, inner].
struct GatherLayout {
  GatherLayout(const Shape& data, int axis, const Shape& indices)
      : outer(data.size(0, axis)),
        dim(data[axis]),
        inner(data.size(axis + 1, data.rank())),
        count(indices.size()) {}

  std::int64_t outer;
  std::int64_t dim;
  std::int64_t inner;
  std::int64_t count;
};

/// GatherND and ScatterND: data [batch, addressed dims, slice], indices [batch, tuples, depth].
struct TupleLayout {
  TupleLayout(const Shape& data, const Shape& indices, int batch_dims) {
    const auto depth = static_cast<int>(indices[indices.rank() - 1]);
    tuples = indices.size(0, indices.rank() - 1);
    batch_tuples = indices.size(batch_dims, indices.rank() - 1);
    batch_size = data.size(batch_dims, data.rank());
    slice = data.size(batch_dims + depth, data.rank());
    const std::vector<std::int64_t> all = data.strides();
    for (int i = batch_dims; i < batch_dims + depth; ++i) {
      dims.push_back(data[i]);
      strides.push_back(all[static_cast<std::size_t>(i)]);
    }
  }

  std::int64_t tuples = 1;        ///< in all
  std::int64_t batch_tuples = 1;  ///< of one batch entry
  std::int64_t batch_size = 1;    ///< elements of one batch entry of the data
  std::int64_t slice = 1;
  std::vector<std::int64_t> dims{};
  std::vector<std::int64_t> strides{};
};

}  // namespace graft
