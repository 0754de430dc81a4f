#include "io/proto/tensor_proto.h"

#include <bit>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "io/proto/tensor_fields.h"

namespace graft::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

Shape shape_of(const pb::TensorProto& proto, std::string_view who) {
  for (const std::int64_t dim : proto.dims()) {
    if (dim < 0) fail(ErrorKind::model, who, ": dimension ", dim, " is negative");
  }
  try {
    return Shape({proto.dims().begin(), proto.dims().end()});
  } catch (const Error& error) {
    fail(ErrorKind::model, who, ": ", error.what());
  }
}

DType dtype_of_proto(const pb::TensorProto& proto, std::string_view who) {
  if (!is_known_dtype(proto.data_type())) {
    fail(ErrorKind::model, who, " has element type ", proto.data_type(),
         ", which ONNX does not define");
  }
  return static_cast<DType>(proto.data_type());
}

std::size_t bytes_needed(DType dtype, const Shape& shape, std::string_view who) {
  try {
    return bytes_of(dtype, shape.size());
  } catch (const Error& error) {
    fail(ErrorKind::model, who, ": ", error.what());
  }
}

void check_raw(const pb::TensorProto& proto, DType dtype, const Shape& shape,
               std::string_view who) {
  const std::size_t bytes = bytes_needed(dtype, shape, who);
  if (dtype == DType::string) fail(ErrorKind::model, who, ": strings cannot be raw_data");
  if (proto.raw_data().size() != bytes) {
    fail(ErrorKind::model, who, ": ", describe(dtype, shape), " needs ", bytes,
         " bytes, raw_data has ", proto.raw_data().size());
  }
}

/// The elements of a tensor whose data is in one of the typed fields.
Tensor take_typed(pb::TensorProto& proto, DType dtype, const Shape& shape, std::string_view who) {
  if (dtype == DType::string) {
    std::vector<std::string> strings;
    strings.reserve(static_cast<std::size_t>(proto.string_data_size()));
    for (std::string& one : *proto.mutable_string_data()) strings.push_back(std::move(one));
    proto.clear_string_data();
    return Tensor::from_strings(shape, std::move(strings));
  }
  Tensor tensor = Tensor::empty(dtype, shape);
  take_fields(proto, dtype, who, {static_cast<unsigned char*>(tensor.data()), tensor.bytes()});
  return tensor;
}

/// Any other byte in a bool is undefined behaviour once C++ reads it.
void normalise_bools(Tensor& tensor) {
  if (tensor.dtype() != DType::boolean) return;
  auto* const bytes = static_cast<unsigned char*>(tensor.data());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
}

}  // namespace

void check_tensor(const pb::TensorProto& proto, std::string_view who,
                  const ExternalReader& external) {
  const DType dtype = dtype_of_proto(proto, who);
  const Shape shape = shape_of(proto, who);
  const std::size_t bytes = bytes_needed(dtype, shape, who);
  if (proto.has_segment()) fail(ErrorKind::unsupported, who, " is split into segments");
  const bool has_typed = count_typed_fields(proto) > 0;
  if (is_external(proto)) {
    if (dtype == DType::string || has_typed || !proto.raw_data().empty()) {
      fail(ErrorKind::model, who,
           " is stored outside the model: it must not be a string tensor "
           "nor hold data of its own");
    }
    return external.check(proto, bytes, who);
  }
  if (proto.has_raw_data() && has_typed) {
    fail(ErrorKind::model, who, " holds its data twice: in raw_data and in a typed field");
  }
  if (proto.has_raw_data()) return check_raw(proto, dtype, shape, who);
  check_fields(proto, dtype, shape, who);
}

Tensor take_tensor(pb::TensorProto& proto, std::string_view who, const ExternalReader& external) {
  const DType dtype = dtype_of_proto(proto, who);
  const Shape shape = shape_of(proto, who);
  Tensor tensor;
  if (is_external(proto)) {
    tensor = Tensor::empty(dtype, shape);
    external.read(proto, tensor.bytes(), who, tensor.data());
    proto.clear_external_data();
    proto.clear_data_location();
    proto.set_raw_data("");
  } else if (proto.has_raw_data()) {
    tensor = Tensor::from_bytes(dtype, shape, proto.raw_data().data(), proto.raw_data().size());
    std::string().swap(*proto.mutable_raw_data());  // gives the memory back, keeps the presence
  } else {
    tensor = take_typed(proto, dtype, shape, who);
  }
  normalise_bools(tensor);
  proto.clear_data_type();
  proto.clear_dims();
  return tensor;
}

pb::TensorProto new_tensor_proto() {
  pb::TensorProto proto;
  proto.set_raw_data("");
  return proto;
}

void put_tensor(const Tensor& tensor, pb::TensorProto& proto, ExternalWriter* external) {
  const DType dtype = tensor.dtype();
  proto.set_data_type(static_cast<int>(dtype));
  proto.mutable_dims()->Assign(tensor.shape().begin(), tensor.shape().end());
  if (dtype == DType::string) {
    proto.clear_raw_data();
    for (const std::string& one : tensor.strings()) proto.add_string_data(one);
    return;
  }
  const Tensor host = tensor.to(cpu());
  if (external != nullptr && external->takes(host.bytes())) {
    proto.clear_raw_data();
    external->add(host.data(), host.bytes(), proto);
  } else if (proto.has_raw_data()) {
    proto.set_raw_data(host.data(), host.bytes());
  } else {
    put_fields(dtype, {static_cast<const unsigned char*>(host.data()), host.bytes()}, host.size(),
               proto);
  }
}

}  // namespace graft::onnx
