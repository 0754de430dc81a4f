#include "core/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace graft {
namespace {

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The limits as powers of two: the greatest integer itself is not exact in floating point.
    constexpr From kLeast = static_cast<From>(std::numeric_limits<To>::min());
    constexpr To kHalf = std::numeric_limits<To>::max() / 2 + 1;
    constexpr From kBeyond = static_cast<From>(kHalf) * 2;
    if (!(value >= kLeast)) return std::isnan(value) ? To{} : std::numeric_limits<To>::min();
    return value >= kBeyond ? std::numeric_limits<To>::max() : static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

/// The elements of `tensor` as T. Throws Error{type} when its type is not in AllTypes.
template <class T>
std::vector<T> converted(const Tensor& tensor, std::string_view wanted) {
  const Tensor host = tensor.to(cpu());
  std::vector<T> result(static_cast<std::size_t>(host.size()));
  const bool ok = visit_dtype(AllTypes{}, host.dtype(), [&]<class From>() {
    std::ranges::transform(host.values<const From>(), result.begin(),
                           [](From value) { return convert<T>(value); });
  });
  if (!ok) fail(ErrorKind::type, "cannot read ", describe(tensor), " as ", wanted);
  return result;
}

}  // namespace

Tensor::Tensor(Content content) : content_(std::make_shared<const Content>(std::move(content))) {}

const Tensor::Content& Tensor::no_content() {
  static const Content kNone;
  return kNone;
}

Tensor Tensor::empty(DType dtype, const Shape& shape, Device& device) {
  if (bits_of(dtype) == 0) fail(ErrorKind::type, "no plain tensor holds elements of type ", dtype);
  Device* const home = &device;
  std::shared_ptr<void> memory(device.allocate(bytes_of(dtype, shape.size())),
                               [home](void* p) { home->deallocate(p); });
  void* const data = memory.get();
  return view(dtype, shape, data, std::move(memory), device);
}

Tensor Tensor::zeros(DType dtype, const Shape& shape, Device& device) {
  if (device.kind() == DeviceKind::cpu) return full(dtype, shape, 0.0);
  Tensor result = empty(dtype, shape, device);
  device.fill(result.data(), 0, result.bytes());
  return result;
}

Tensor Tensor::full(DType dtype, const Shape& shape, double value, Device& device) {
  Tensor result = empty(dtype, shape);
  const bool ok = visit_dtype(AllTypes{}, dtype, [&]<class T>() {
    std::ranges::fill(result.values<T>(), convert<T>(value));
  });
  if (!ok) fail(ErrorKind::type, "cannot fill a tensor of type ", dtype);
  return result.to(device);
}

Tensor Tensor::from_bytes(DType dtype, const Shape& shape, const void* bytes, std::size_t size) {
  const std::size_t wanted = bytes_of(dtype, shape.size());
  if (wanted != size) {
    fail(ErrorKind::shape, describe(dtype, shape), " needs ", wanted, " bytes, got ", size);
  }
  Tensor result = empty(dtype, shape);
  if (size > 0) std::memcpy(result.data(), bytes, size);
  return result;
}

Tensor Tensor::from_strings(const Shape& shape, std::vector<std::string> values) {
  if (shape.size() != static_cast<std::int64_t>(values.size())) {
    fail(ErrorKind::shape, describe(DType::string, shape), " needs ", shape.size(),
         " strings, got ", values.size());
  }
  return Tensor(
      {.dtype = DType::string, .shape = shape, .device = &cpu(), .strings = std::move(values)});
}

Tensor Tensor::view(DType dtype, const Shape& shape, void* memory, std::shared_ptr<void> owner,
                    Device& device) {
  return Tensor({.dtype = dtype,
                 .shape = shape,
                 .device = &device,
                 .data = memory,
                 .owner = std::move(owner)});
}

const std::vector<std::string>& Tensor::strings() const {
  if (dtype() != DType::string) {
    fail(ErrorKind::type, "wanted a string tensor, found ", describe(*this));
  }
  return content().strings;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.size() != size()) {
    fail(ErrorKind::shape, "cannot view ", describe(*this), " as ", shape);
  }
  Content content = this->content();
  content.shape = shape;
  return Tensor(std::move(content));
}

Tensor Tensor::clone() const {
  if (!defined() || dtype() == DType::string) return *this;
  if (device().kind() == DeviceKind::cpu) return from_bytes(dtype(), shape(), data(), bytes());
  Tensor result = empty(dtype(), shape(), device());
  device().copy_async(result.data(), data(), bytes());
  return result;
}

Tensor Tensor::to(Device& target) const {
  if (!defined() || &target == &device()) return *this;
  Tensor result = empty(dtype(), shape(), target);
  if (device().kind() == DeviceKind::cpu) {
    target.copy_from_host(result.data(), data(), bytes());
  } else if (target.kind() == DeviceKind::cpu) {
    device().copy_to_host(result.data(), data(), bytes());
  } else {
    return to(cpu()).to(target);
  }
  return result;
}

Tensor Tensor::cast(DType wanted) const {
  if (wanted == dtype()) return clone();
  Tensor result = empty(wanted, shape());
  bool ok = false;
  visit_dtype(AllTypes{}, wanted, [&]<class To>() {
    ok = visit_dtype(AllTypes{}, dtype(), [&]<class From>() {
      std::ranges::transform(values<const From>(), result.values<To>().begin(),
                             [](From value) { return convert<To>(value); });
    });
  });
  if (!ok) fail(ErrorKind::type, "cannot convert ", describe(*this), " to ", wanted);
  return result;
}

void Tensor::copy_from(const Tensor& source) const {
  if (bits_of(dtype()) == 0) fail(ErrorKind::type, "cannot overwrite ", describe(*this));
  if (source.dtype() != dtype() || source.shape() != shape()) {
    fail(ErrorKind::shape, "cannot copy ", describe(source), " into ", describe(*this));
  }
  if (&source.device() == &device()) return device().copy_async(data(), source.data(), bytes());
  const Tensor host = source.to(cpu());
  device().copy_from_host(data(), host.data(), bytes());
}

void Tensor::check_host(DType wanted) const {
  if (wanted != dtype()) {
    fail(ErrorKind::type, "wanted elements of type ", wanted, ", found ", describe(*this));
  }
  if (device().kind() != DeviceKind::cpu) {
    fail(ErrorKind::device, describe(*this), " lies on ", device().name(), ", not on the cpu");
  }
}

std::string describe(DType dtype, const Shape& shape) {
  return text(dtype, shape);
}

std::string describe(const Tensor& tensor) {
  return tensor.defined() ? describe(tensor.dtype(), tensor.shape()) : "no tensor";
}

void append_text(std::string& to, const Tensor& tensor) {
  to += describe(tensor);
}

std::vector<std::int64_t> to_int64(const Tensor& tensor) {
  if (tensor.dtype() != DType::i64 && tensor.dtype() != DType::i32) {
    fail(ErrorKind::type, "wanted i64 or i32 elements, found ", describe(tensor));
  }
  return converted<std::int64_t>(tensor, "integers");
}

std::vector<double> to_double(const Tensor& tensor) {
  return converted<double>(tensor, "numbers");
}

bool equal_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (!a.defined()) return true;
  if (a.dtype() == DType::string) return a.strings() == b.strings();
  const Tensor left = a.to(cpu());
  const Tensor right = b.to(cpu());
  return left.bytes() == 0 || std::memcmp(left.data(), right.data(), left.bytes()) == 0;
}

}  // namespace graft
