#include "python/bindings/arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bindings.h"

namespace graft::python {
namespace {

using Code = nb::dlpack::dtype_code;

/// Contiguous elements on the CPU, whoever holds them.
using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

struct TypePair {
  DType dtype;
  Code code;
  std::uint8_t bits;
};

constexpr TypePair kTypes[] = {
    {DType::f32, Code::Float, 32},     {DType::f64, Code::Float, 64},
    {DType::f16, Code::Float, 16},     {DType::i64, Code::Int, 64},
    {DType::i32, Code::Int, 32},       {DType::i16, Code::Int, 16},
    {DType::i8, Code::Int, 8},         {DType::u64, Code::UInt, 64},
    {DType::u32, Code::UInt, 32},      {DType::u16, Code::UInt, 16},
    {DType::u8, Code::UInt, 8},        {DType::boolean, Code::Bool, 8},
    {DType::bf16, Code::Bfloat, 16},   {DType::c64, Code::Complex, 64},
    {DType::c128, Code::Complex, 128},
};

DType from_dlpack(nb::dlpack::dtype type) {
  for (const TypePair& pair : kTypes) {
    if (type.code == static_cast<std::uint8_t>(pair.code) && type.bits == pair.bits &&
        type.lanes == 1) {
      return pair.dtype;
    }
  }
  return DType::undefined;
}

/// Whether C++ may read the elements where they lie: a view may start between two of them, and hold
/// bools that are neither 0 nor 1.
bool is_readable(DType dtype, const void* memory, std::int64_t size) {
  const auto bytes = bytes_of(dtype, 1);
  if (reinterpret_cast<std::uintptr_t>(memory) % std::min<std::size_t>(bytes, 8) != 0) return false;
  const std::span<const unsigned char> elements(static_cast<const unsigned char*>(memory),
                                                static_cast<std::size_t>(size));
  return dtype != DType::boolean ||
         std::ranges::all_of(elements, [](unsigned char byte) { return byte <= 1; });
}

/// A copy where they are not.
Tensor readable_copy(DType dtype, const Shape& shape, const void* memory) {
  Tensor copy = Tensor::empty(dtype, shape);
  if (copy.bytes() > 0) std::memcpy(copy.data(), memory, copy.bytes());
  auto* const bytes = static_cast<unsigned char*>(copy.data());
  for (std::size_t i = 0; dtype == DType::boolean && i < copy.bytes(); ++i) {
    bytes[i] = bytes[i] != 0 ? 1 : 0;
  }
  return copy;
}

/// What Python calls the array's element type.
std::string dtype_text(nb::handle array) {
  if (!nb::hasattr(array, "dtype")) return "unknown";
  const nb::object dtype = array.attr("dtype");
  return nb::cast<std::string>(nb::str(dtype));
}

Tensor share(const AnyArray& array, nb::handle object, std::string_view what) {
  const DType dtype = from_dlpack(array.dtype());
  if (dtype == DType::undefined) {
    fail(ErrorKind::type, what, ": found an array of dtype ", dtype_text(object),
         ", which Graft has no element type for; convert it first");
  }
  std::vector<std::int64_t> dims(array.shape_ptr(), array.shape_ptr() + array.ndim());
  void* const memory = const_cast<void*>(array.data());  // NOLINT: inputs are only read
  const Shape shape(std::move(dims));
  if (!is_readable(dtype, memory, shape.size())) return readable_copy(dtype, shape, memory);
  return Tensor::view(dtype, shape, memory, shared_owner(array));
}

Tensor strings_of(const nb::object& array, std::string_view what) {
  std::vector<std::int64_t> dims;
  for (nb::handle dim : array.attr("shape")) dims.push_back(nb::cast<std::int64_t>(dim));
  std::vector<std::string> values;
  for (nb::handle item : array.attr("ravel")().attr("tolist")()) {
    if (!nb::isinstance<nb::str>(item)) {
      fail(ErrorKind::type, what, ": found an array of dtype ", dtype_text(array), " that holds a ",
           nb::inst_name(item).c_str(), ", wanted numbers, bool or strings");
    }
    values.push_back(nb::cast<std::string>(item));
  }
  return Tensor::from_strings(Shape(std::move(dims)), std::move(values));
}

bool is_number(DType dtype) {
  return is_float(dtype) || is_integer(dtype) || dtype == DType::boolean;
}

/// Throws Error{type} naming the first integer that `wanted` cannot hold: a cast would wrap it.
void check_fits(const Tensor& integers, std::string_view what, DType wanted) {
  visit_dtype(IntegerTypes{}, integers.dtype(), [&]<class From>() {
    visit_dtype(IntegerTypes{}, wanted, [&]<class To>() {
      for (const From value : integers.values<const From>()) {
        if (std::in_range<To>(value)) continue;
        fail(ErrorKind::type, what, ": found ", integers, " that holds ", +value,
             ", which does not fit into the ", wanted, " that is wanted");
      }
    });
  });
}

/// NumPy's array in this machine's order of bytes.
nb::object in_native_order(const nb::object& array) {
  const nb::object dtype = array.attr("dtype");
  if (nb::cast<bool>(dtype.attr("isnative"))) return array;
  return array.attr("astype")(dtype.attr("newbyteorder")("="));
}

}  // namespace

Tensor to_tensor(nb::handle object, std::string_view what) {
  AnyArray array;
  if (nb::try_cast(object, array)) return share(array, object, what);
  const bool lies_elsewhere = nb::hasattr(object, "__dlpack__");
  nb::object made;
  try {
    made = in_native_order(
        nb::module_::import_("numpy").attr("asarray")(object, nb::arg("order") = "C"));
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_ImportError)) throw;
    fail(ErrorKind::type, what, ": found a ", nb::inst_name(object).c_str(),
         ", wanted an array on the CPU", lies_elsewhere ? " without gradients" : "", " (",
         nb::cast<std::string>(nb::str(error.value())), ")");
  }
  if (nb::ndarray_check(made) && nb::try_cast(made, array)) return share(array, made, what);
  return strings_of(made, what);
}

Tensor to_tensor(nb::handle object, std::string_view what, DType wanted) {
  return converted(to_tensor(object, what), what, wanted);
}

Tensor converted(const Tensor& tensor, std::string_view what, DType wanted) {
  const DType found = tensor.dtype();
  const bool loses = is_float(found) && !is_float(wanted);
  if (found == wanted || !is_number(found) || !is_number(wanted) || loses) return tensor;
  check_fits(tensor, what, wanted);
  return tensor.cast(wanted);
}

Tensor to_writable_tensor(nb::handle object, std::string_view what, DType wanted) {
  const Tensor tensor = to_tensor(object, what, wanted);
  nb::ndarray<nb::c_contig, nb::device::cpu> writable;
  return nb::try_cast(object, writable, /*convert=*/false) ? tensor : tensor.clone();
}

namespace {

nb::object array_of_strings(const Tensor& tensor) {
  nb::list values;
  for (const std::string& value : tensor.strings()) values.append(value);
  nb::list dims;
  for (const std::int64_t dim : tensor.shape()) dims.append(dim);
  return nb::module_::import_("numpy").attr("array")(values, "object").attr("reshape")(dims);
}

/// `owner` keeps the memory alive.
template <class... Access>
nb::object array_over(const Tensor& tensor, nb::handle owner) {
  for (const TypePair& pair : kTypes) {
    if (pair.dtype != tensor.dtype()) continue;
    const nb::dlpack::dtype type{static_cast<std::uint8_t>(pair.code), pair.bits, 1};
    const std::vector<std::size_t> dims(tensor.shape().begin(), tensor.shape().end());
    return nb::cast(nb::ndarray<nb::numpy, nb::c_contig, Access...>(
        tensor.data(), dims.size(), dims.data(), owner, nullptr, type, nb::device::cpu::value));
  }
  fail(ErrorKind::unsupported, "NumPy has no element type for ", tensor);
}

/// `is_own`: nobody else has the tensor, so that a copy of it may be written as well.
nb::object array_of(const Tensor& tensor, bool is_own) {
  if (!tensor.defined()) return nb::none();
  if (tensor.dtype() == DType::string) return array_of_strings(tensor);
  const Tensor host = tensor.to(cpu());
  auto held = std::make_unique<Tensor>(host.dtype() == DType::bf16 ? host.cast(DType::f32) : host);
  const Tensor& elements = *held;
  const bool is_copy = elements.data() != tensor.data();
  const nb::capsule owner(held.release(),
                          [](void* memory) noexcept { delete static_cast<Tensor*>(memory); });
  return is_own || !is_copy ? array_over(elements, owner) : array_over<nb::ro>(elements, owner);
}

}  // namespace

nb::object to_array(const Tensor& tensor) {
  return array_of(tensor, false);
}

nb::object to_own_array(const Tensor& tensor) {
  return array_of(tensor, true);
}

nb::object to_new_array(const Tensor& tensor) {
  return to_own_array(tensor.defined() && tensor.dtype() != DType::string ? tensor.clone()
                                                                          : tensor);
}

nb::object to_python(const Datum& datum) {
  if (datum.is_tensor()) return to_own_array(datum.tensor());
  if (datum.is_sequence()) {
    nb::list items;
    for (const Datum& item : datum.sequence().items) items.append(to_python(item));
    return items;
  }
  if (!datum.is_dictionary()) return nb::none();
  const nb::object keys = to_array(datum.dictionary().keys);
  const nb::object values = to_array(datum.dictionary().values);
  const nb::object builtins = nb::module_::import_("builtins");
  return builtins.attr("dict")(
      builtins.attr("zip")(keys.attr("tolist")(), values.attr("tolist")()));
}

namespace {

/// Keys are integers or strings, as ONNX has them. A float of Python becomes the f32 that maps of
/// models hold; numbers of NumPy keep their type.
Dictionary to_dictionary(const nb::dict& map, std::string_view what) {
  if (map.size() == 0) return {Tensor::zeros(DType::i64, {0}), Tensor::zeros(DType::f32, {0})};
  nb::list keys;
  nb::list values;
  for (const auto& [key, value] : map) {
    keys.append(key);
    values.append(value);
  }
  const bool are_strings = nb::isinstance<nb::str>(keys[0]);
  for (nb::handle key : keys) {
    if (nb::isinstance<nb::str>(key) == are_strings && (are_strings || PyIndex_Check(key.ptr()))) {
      continue;
    }
    fail(ErrorKind::type, what, ": found a dict with a ", nb::inst_name(key).c_str(),
         " among its keys, wanted strings alone or integers alone");
  }
  const DType numbers = PyFloat_CheckExact(values[0].ptr()) ? DType::f32 : DType::undefined;
  return {to_tensor(keys, what, DType::i64), to_tensor(values, what, numbers)};
}

}  // namespace

Datum to_datum(nb::handle object, std::string_view what, const ValueType& wanted) {
  if (object.is_none()) return {};
  if (wanted.is_container && nb::isinstance<nb::dict>(object)) {
    return to_dictionary(nb::borrow<nb::dict>(object), what);
  }
  if (!wanted.is_container || !nb::isinstance<nb::list>(object)) {
    return to_tensor(object, what, wanted.dtype);
  }
  Sequence sequence{.items = {}, .dtype = wanted.dtype};
  for (nb::handle item : nb::borrow<nb::list>(object)) {
    if (nb::isinstance<nb::dict>(item)) {
      sequence.items.emplace_back(to_dictionary(nb::borrow<nb::dict>(item), what));
    } else {
      sequence.items.emplace_back(to_tensor(item, what, wanted.dtype));
    }
  }
  return sequence;
}

}  // namespace graft::python
