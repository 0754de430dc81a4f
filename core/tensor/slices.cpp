#include "core/tensor/slices.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "core/base/at.h"

namespace graft {
namespace {

/// Calls copy(from, to, count) in elements for each run of adjacent ones. `part` is the shape of
/// the smaller tensor, whose entry 0 of `axis` is entry `start` of the larger one.
template <class Copy>
void for_each_run(const Shape& whole, const Shape& part, int axis, std::int64_t start,
                  const Copy& copy) {
  const std::int64_t inner = whole.size(axis + 1, whole.rank());
  const std::int64_t outer = whole.size(0, axis);
  const std::int64_t run = part[axis] * inner;
  if (run == 0) return;  // of which there may be 2^62
  for (std::int64_t i = 0; i < outer; ++i) {
    copy((i * whole[axis] + start) * inner, i * run, run);
  }
}

std::size_t element_bytes(const Tensor& tensor) {
  const int bits = bits_of(tensor.dtype());
  if (bits < 8) fail(ErrorKind::unsupported, "cannot cut or join tensors of type ", tensor.dtype());
  return static_cast<std::size_t>(bits / 8);
}

Shape with_dim(const Shape& shape, int axis, std::int64_t dim) {
  std::vector<std::int64_t> dims = shape.dims();
  at(dims, axis) = dim;
  return Shape(std::move(dims));
}

void check_axis(std::string_view what, const Tensor& tensor, int axis, int most) {
  if (!tensor.defined()) fail(ErrorKind::argument, "cannot ", what, ": there is no tensor");
  if (axis < 0 || axis > most) {
    fail(ErrorKind::shape, "cannot ", what, " ", tensor, " along axis ", axis, ", wanted 0 to ",
         most);
  }
}

/// The result's shape. Throws if the tensors do not fit.
Shape joined_shape(std::span<const Tensor> tensors, int axis) {
  if (tensors.empty()) fail(ErrorKind::argument, "there are no tensors to join");
  const Tensor& first = tensors.front();
  std::int64_t dim = 0;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) fail(ErrorKind::argument, "cannot join: there is no tensor");
    if (tensor.dtype() != first.dtype()) {
      fail(ErrorKind::type, "cannot join ", first, " and ", tensor);
    }
    if (tensor.rank() != first.rank() || axis < 0 || axis >= tensor.rank() ||
        with_dim(tensor.shape(), axis, 0) != with_dim(first.shape(), axis, 0)) {
      fail(ErrorKind::shape, "cannot join ", first, " and ", tensor, " along axis ", axis);
    }
    if (__builtin_add_overflow(dim, tensor.shape()[axis], &dim)) {
      fail(ErrorKind::shape, "the joined axis ", axis, " of ", tensors.size(), " tensors like ",
           first, " overflows 64 bits");
    }
  }
  return with_dim(first.shape(), axis, dim);
}

Tensor concat_strings(std::span<const Tensor> tensors, const Shape& shape, int axis) {
  std::vector<std::string> values(static_cast<std::size_t>(shape.size()));
  std::int64_t start = 0;
  for (const Tensor& tensor : tensors) {
    for_each_run(shape, tensor.shape(), axis, start, [&](auto to, auto from, auto count) {
      std::copy_n(tensor.strings().begin() + from, count, values.begin() + to);
    });
    start += tensor.shape()[axis];
  }
  return Tensor::from_strings(shape, std::move(values));
}

void check_part(const Tensor& tensor, int axis, std::int64_t start, std::int64_t length) {
  check_axis("cut", tensor, axis, tensor.rank() - 1);
  const std::int64_t entries = tensor.shape()[axis];
  if (start < 0 || length < 0 || start > entries || length > entries - start) {
    fail(ErrorKind::shape, "cannot take ", length, " entries from ", start, " on of the ", entries,
         " along axis ", axis, " of ", tensor);
  }
}

}  // namespace

Tensor narrow(const Tensor& tensor, int axis, std::int64_t start, std::int64_t length) {
  check_part(tensor, axis, start, length);
  const Shape shape = with_dim(tensor.shape(), axis, length);
  if (tensor.dtype() == DType::string) {
    std::vector<std::string> values;
    for_each_run(tensor.shape(), shape, axis, start, [&](auto from, auto, auto count) {
      std::copy_n(tensor.strings().begin() + from, count, std::back_inserter(values));
    });
    return Tensor::from_strings(shape, std::move(values));
  }
  const std::size_t size = element_bytes(tensor);
  Tensor result = Tensor::empty(tensor.dtype(), shape);
  for_each_run(tensor.shape(), shape, axis, start, [&](auto from, auto to, auto count) {
    std::memcpy(
        static_cast<std::byte*>(result.data()) + static_cast<std::size_t>(to) * size,
        static_cast<const std::byte*>(tensor.data()) + static_cast<std::size_t>(from) * size,
        static_cast<std::size_t>(count) * size);
  });
  return result;
}

void check_entries(const Tensor& tensor, int axis) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  check_axis("list the entries of", tensor, axis, tensor.rank() - 1);
  if (tensor.shape()[axis] > tensor.size() && tensor.shape()[axis] > kMost) {
    fail(ErrorKind::unsupported, "cannot list the entries of ", tensor, " along axis ", axis);
  }
}

Tensor select(const Tensor& tensor, int axis, std::int64_t index) {
  const Tensor entry = narrow(tensor, axis, index, 1);
  std::vector<std::int64_t> dims = tensor.shape().dims();
  dims.erase(dims.begin() + axis);
  return entry.reshaped(Shape(std::move(dims)));
}

Tensor concat(std::span<const Tensor> tensors, int axis) {
  const Shape shape = joined_shape(tensors, axis);
  const DType dtype = tensors.front().dtype();
  if (dtype == DType::string) return concat_strings(tensors, shape, axis);
  const std::size_t size = element_bytes(tensors.front());
  Tensor result = Tensor::empty(dtype, shape);
  std::int64_t start = 0;
  for (const Tensor& tensor : tensors) {
    for_each_run(shape, tensor.shape(), axis, start, [&](auto to, auto from, auto count) {
      std::memcpy(
          static_cast<std::byte*>(result.data()) + static_cast<std::size_t>(to) * size,
          static_cast<const std::byte*>(tensor.data()) + static_cast<std::size_t>(from) * size,
          static_cast<std::size_t>(count) * size);
    });
    start += tensor.shape()[axis];
  }
  return result;
}

Tensor stack(std::span<const Tensor> tensors, int axis) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    check_axis("stack", tensor, axis, tensor.rank());
    std::vector<std::int64_t> dims = tensor.shape().dims();
    dims.insert(dims.begin() + axis, 1);
    parts.push_back(tensor.reshaped(Shape(std::move(dims))));
  }
  return concat(parts, axis);
}

}  // namespace graft
