#include "core/base/layout.h"

#include "core/base/at.h"

namespace graft {

std::vector<std::int64_t> channels_last_order(int rank) {
  std::vector<std::int64_t> order;
  if (rank > 0) order.push_back(0);
  for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
  if (rank > 1) order.push_back(1);
  return order;
}

Shape channels_last_shape(const Shape& shape) {
  std::vector<std::int64_t> dims;
  for (const std::int64_t axis : channels_last_order(shape.rank())) {
    dims.push_back(shape[static_cast<int>(axis)]);
  }
  return Shape(std::move(dims));
}

Shape with_leading_ones(const Shape& shape, int rank) {
  if (shape.rank() >= rank) return shape;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank - shape.rank()), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  return Shape(std::move(dims));
}

std::vector<std::int64_t> layout_strides(const Shape& shape, Layout layout) {
  if (layout == Layout::row_major) return shape.strides();
  const std::vector<std::int64_t> order = channels_last_order(shape.rank());
  const std::vector<std::int64_t> in_memory = channels_last_shape(shape).strides();
  std::vector<std::int64_t> strides(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    at(strides, order[i]) = in_memory[i];
  }
  return strides;
}

bool is_layout_neutral(const Shape& shape) {
  return shape.rank() < 3 || shape.size() == 0 || shape[1] == 1 || shape.size(2, shape.rank()) == 1;
}

}  // namespace graft
