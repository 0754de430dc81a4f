#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace graft {

/// Dimensions of a tensor, all known and none negative, outermost first. A scalar has rank 0 and
/// one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::vector<std::int64_t>(dims)) {}
  /// Throws Error{shape} if a dim is negative or the product of the dims that are not zero
  /// overflows 64 bits.
  explicit Shape(std::vector<std::int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  /// Throws nothing; `axis` must be in [0, rank).
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  /// Product of all dims; 1 for a scalar.
  std::int64_t size() const { return size_; }
  /// Product of dims in [first, last).
  std::int64_t size(int first, int last) const;
  const std::vector<std::int64_t>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  /// Elements to step over to advance one along each axis, row-major.
  std::vector<std::int64_t> strides() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }

 private:
  std::vector<std::int64_t> dims_;
  std::int64_t size_ = 1;
};

/// "[2,3]"; "[]" for a scalar.
void append_text(std::string& to, const Shape& shape);

/// The shape that `a` and `b` broadcast to by ONNX's (NumPy's) rule.
/// Throws Error{shape} if they do not broadcast; `who` starts the message.
Shape broadcast(const Shape& a, const Shape& b, std::string_view who);

/// Maps a possibly negative axis into [0, rank). Throws Error{shape} if it is out of range.
int normalize_axis(std::int64_t axis, int rank, std::string_view who);

/// a*b for non-negative numbers. Throws Error{shape} on overflow.
std::int64_t checked_multiply(std::int64_t a, std::int64_t b);

}  // namespace graft
