#include "core/base/shape.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/base/error.h"

namespace graft {

Shape::Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {
  // Zeros are left out of the check (as NumPy does), so that strides and partial products of an
  // empty tensor cannot overflow either.
  std::int64_t product = 1;
  bool is_empty = false;
  for (const std::int64_t dim : dims_) {
    if (dim < 0) fail(ErrorKind::shape, "dimension ", dim, " is negative");
    if (dim == 0) {
      is_empty = true;
    } else {
      product = checked_multiply(product, dim);
    }
  }
  size_ = is_empty ? 0 : product;
}

std::int64_t Shape::size(int first, int last) const {
  std::int64_t product = 1;
  for (int i = first; i < last; ++i) product *= (*this)[i];
  return product;
}

std::vector<std::int64_t> Shape::strides() const {
  std::vector<std::int64_t> strides(dims_.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims_.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims_[i];
  }
  return strides;
}

void append_text(std::string& to, const Shape& shape) {
  to += '[';
  for (int i = 0; i < shape.rank(); ++i) to += text(i > 0 ? "," : "", shape[i]);
  to += ']';
}

Shape broadcast(const Shape& a, const Shape& b, std::string_view who) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const std::int64_t da = ia < 0 ? 1 : a[ia];
    const std::int64_t db = ib < 0 ? 1 : b[ib];
    if (da != db && da != 1 && db != 1) {
      fail(ErrorKind::shape, who, ": ", a, " and ", b, " do not broadcast (", da, " against ", db,
           " in axis ", i, ")");
    }
    at(dims, i) = da == 1 ? db : da;
  }
  return Shape(std::move(dims));
}

int normalize_axis(std::int64_t axis, int rank, std::string_view who) {
  if (axis < -rank || axis >= rank) {
    fail(ErrorKind::shape, who, ": axis ", axis, " out of range for rank ", rank);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    fail(ErrorKind::shape, "the product of ", a, " and ", b, " overflows 64 bits");
  }
  return product;
}

}  // namespace graft
