#include "core/ops/conv_geometry.h"

#include "core/tensor/tensor.h"

namespace graft {

std::int64_t group_count(const Node& node, std::int64_t channels) {
  const std::int64_t groups = node.attributes.get_int("group", 1);
  if (groups < 1 || channels % groups != 0) {
    fail(ErrorKind::shape, node.label(), ": group ", groups, " does not divide ", channels,
         " channels");
  }
  return groups;
}

ConvGeometry::ConvGeometry(const Node& node, const Shape& x, const Shape& w, const Shape& y)
    : rank(x.rank() - 2) {
  if (rank < 1 || w.rank() != x.rank() || y.rank() != x.rank()) {
    fail(ErrorKind::shape, node.label(), ": input ", x, ", weight ", w, " and output ", y,
         " must have one rank of at least 3");
  }
  groups = group_count(node, w[0]);
  batch = x[0];
  inputs = w[1];
  outputs = w[0] / groups;
  if (y[0] != batch || y[1] != w[0] || x[1] != checked_multiply(inputs, groups)) {
    fail(ErrorKind::shape, node.label(), ": input ", x, ", weight ", w, " and output ", y,
         " do not fit together with group ", groups);
  }
  const WindowAttributes window(node, {w.begin() + 2, w.end()});
  for (int i = 0; i < rank; ++i) {
    WindowAxis axis = window.axis(i, x[i + 2]);
    if (y[i + 2] > axis.output) {
      fail(ErrorKind::shape, node.label(), ": output ", y, " has ", y[i + 2],
           " windows along spatial axis ", i, ", wanted at most ", axis.output);
    }
    is_complete = is_complete && y[i + 2] == axis.output;
    axis.output = y[i + 2];
    if (rank <= 3) axes[static_cast<std::size_t>(3 - rank + i)] = axis;
  }
}

}  // namespace graft
