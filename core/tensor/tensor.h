#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/device/device.h"

namespace graft {

/// Elements of one type, contiguous and row-major, on one device. A Tensor is a handle: copying it
/// shares the elements. A default Tensor is empty (no type, `defined()` is false).
class Tensor {
 public:
  Tensor() = default;

  /// Not initialised. Throws Error{memory}; Error{type} for strings (see `from_strings`).
  static Tensor empty(DType dtype, const Shape& shape, Device& device = cpu());
  static Tensor zeros(DType dtype, const Shape& shape, Device& device = cpu());
  /// Every element is `value`, converted to `dtype` (any type of AllTypes).
  static Tensor full(DType dtype, const Shape& shape, double value, Device& device = cpu());
  /// Copies `values`, row-major. Throws Error{shape} if their number differs from shape.size().
  template <class T>
  static Tensor from(const Shape& shape, std::span<const T> values) {
    return from_bytes(dtype_of<T>, shape, values.data(), values.size_bytes());
  }
  template <class T>
  static Tensor from(const Shape& shape, const std::vector<T>& values) {
    return from(shape, std::span<const T>(values));
  }
  template <class T>
  static Tensor from(const Shape& shape, std::initializer_list<T> values) {
    return from(shape, std::span<const T>(values.begin(), values.size()));
  }
  /// A tensor of rank 0 with that element.
  template <class T>
  static Tensor scalar(T value) {
    return from(Shape{}, std::span<const T>(&value, 1));
  }
  /// Copies host bytes. Throws Error{shape} if `size` differs from what dtype and shape need.
  static Tensor from_bytes(DType dtype, const Shape& shape, const void* bytes, std::size_t size);
  static Tensor from_strings(const Shape& shape, std::vector<std::string> values);
  /// Wraps memory that the caller owns; `owner` (may be null) keeps it alive.
  static Tensor view(DType dtype, const Shape& shape, void* memory, std::shared_ptr<void> owner,
                     Device& device = cpu());

  bool defined() const { return content_ != nullptr; }
  DType dtype() const { return content().dtype; }
  const Shape& shape() const { return content().shape; }
  int rank() const { return shape().rank(); }
  /// The number of elements.
  std::int64_t size() const { return shape().size(); }
  /// Bytes of all elements; sub-byte types are packed.
  std::size_t bytes() const { return bytes_of(dtype(), size()); }
  /// To be asked for only when the tensor is defined.
  Device& device() const { return *content().device; }

  /// The elements, on `device()`. Constness is the handle's, not the elements'.
  void* data() const { return content().data; }
  /// The elements as T. Throws Error{type} if T is not the element type, Error{device} if the
  /// tensor is not on the CPU.
  template <class T>
  std::span<T> values() const {
    static_assert(dtype_of<std::remove_const_t<T>> != DType::undefined);
    check_host(dtype_of<std::remove_const_t<T>>);
    return {static_cast<T*>(data()), static_cast<std::size_t>(size())};
  }
  /// Throws Error{type} if this is not a string tensor.
  const std::vector<std::string>& strings() const;

  /// The same elements under another shape. Throws Error{shape} if the sizes differ.
  Tensor reshaped(const Shape& shape) const;
  /// A copy that shares nothing, on the same device.
  Tensor clone() const;
  /// This tensor when it lies on `device` already, else a copy there.
  Tensor to(Device& target) const;
  /// A copy converted to `dtype`; CPU only. Float to integer truncates and saturates, NaN gives 0;
  /// integer to integer keeps the low bits; anything but zero is true.
  /// Throws Error{type} for a type outside AllTypes.
  Tensor cast(DType wanted) const;
  /// Overwrites the elements. Throws Error{shape} if type or shape differ, Error{type} for strings
  /// (which are immutable) and for a tensor that is not defined.
  void copy_from(const Tensor& source) const;

 private:
  struct Content {
    DType dtype = DType::undefined;
    Shape shape{};
    Device* device = nullptr;
    void* data = nullptr;
    std::shared_ptr<void> owner{};
    std::vector<std::string> strings{};
  };
  explicit Tensor(Content content);
  static const Content& no_content();
  const Content& content() const { return content_ == nullptr ? no_content() : *content_; }
  void check_host(DType wanted) const;

  std::shared_ptr<const Content> content_;
};

/// Names type and shape for messages: "f32[2,3]".
std::string describe(DType dtype, const Shape& shape);
/// "f32[2,3]"; "no tensor" when not defined.
std::string describe(const Tensor& tensor);
void append_text(std::string& to, const Tensor& tensor);

/// The elements of an i64 or i32 tensor as 64-bit numbers: shapes, axes, pads, indices.
/// Throws Error{type} for other types.
std::vector<std::int64_t> to_int64(const Tensor& tensor);
/// The elements of any numeric or bool tensor as doubles. Throws Error{type} for other types.
std::vector<double> to_double(const Tensor& tensor);

/// Whether both have the same type, shape and bytes.
bool equal_bits(const Tensor& a, const Tensor& b);

}  // namespace graft
