#pragma once

#include <graft/model.h>
#include <graft/tensor.h>
#include <nanobind/nanobind.h>

#include <string_view>

// Arrays of Python as tensors, and tensors as arrays. Call with the interpreter's lock held.

namespace graft::python {

/// What the object holds: anything with `__dlpack__` or the buffer protocol, else whatever NumPy
/// makes an array of. Elements that lie row-major on the CPU are shared, and kept alive; others are
/// copied. Throws Error{type}; `what` starts the message ("input 'x'").
Tensor to_tensor(nanobind::handle object, std::string_view what);

/// The same with the element type that is wanted, where none is lost: floats become other floats,
/// integers and bool any number. Whatever else the tensor holds stays, for others to judge. Throws
/// Error{type} for an integer that the wanted type cannot hold.
Tensor to_tensor(nanobind::handle object, std::string_view what, DType wanted);
/// The second half of that, for what is a tensor already.
Tensor converted(const Tensor& tensor, std::string_view what, DType wanted);
/// The same as `to_tensor`, but memory that Python may not write to is copied, not shared.
Tensor to_writable_tensor(nanobind::handle object, std::string_view what, DType wanted);

/// A NumPy array over the tensor's elements, which it shares and keeps alive. bf16, which NumPy
/// lacks, comes as a copy in f32, what lies on a card as a copy too: such arrays are read-only,
/// since the tensor would not see what is written. Strings come as an array of objects. Throws
/// Error{unsupported} for types that NumPy has none for.
nanobind::object to_array(const Tensor& tensor);
/// The same for a tensor that nobody else has: the array may be written in any case.
nanobind::object to_own_array(const Tensor& tensor);

/// An array over a copy.
nanobind::object to_new_array(const Tensor& tensor);

/// Tensors that nobody else has become arrays, sequences lists, maps dicts, nothing None.
nanobind::object to_python(const Datum& datum);
/// The way back for an input of that type: a list becomes a sequence and a dict a map where a
/// container is wanted.
Datum to_datum(nanobind::handle object, std::string_view what, const ValueType& wanted);

}  // namespace graft::python
