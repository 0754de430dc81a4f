#include "io/proto/type_proto.h"

#include "core/base/error.h"

namespace graft::onnx {
namespace {

void check_element_type(int number, std::string_view who) {
  if (number != 0 && !is_known_dtype(number)) {
    fail(ErrorKind::model, who, " has element type ", number, ", which ONNX does not define");
  }
}

void check_dims(const pb::TensorShapeProto& shape, std::string_view who) {
  for (const auto& dim : shape.dim()) {
    if (dim.dim_value() < -1) {
      fail(ErrorKind::model, who, ": dimension ", dim.dim_value(), " is negative");
    }
  }
}

Dim to_dim(const pb::TensorShapeProto::Dimension& dim) {
  if (dim.has_dim_value()) return dim.dim_value() >= 0 ? Dim(dim.dim_value()) : Dim();
  const std::string& name = dim.dim_param();
  // These stand for "unknown" and must not make two dims equal.
  if (name.empty() || name == "?" || name == "-1") return {};
  return Dim(name);
}

}  // namespace

void check_type(const pb::TypeProto& proto, std::string_view who) {
  switch (proto.value_case()) {
    case pb::TypeProto::kTensorType:
      check_element_type(proto.tensor_type().elem_type(), who);
      return check_dims(proto.tensor_type().shape(), who);
    case pb::TypeProto::kSparseTensorType:
      check_element_type(proto.sparse_tensor_type().elem_type(), who);
      return check_dims(proto.sparse_tensor_type().shape(), who);
    case pb::TypeProto::kSequenceType:
      return check_type(proto.sequence_type().elem_type(), who);
    case pb::TypeProto::kOptionalType:
      return check_type(proto.optional_type().elem_type(), who);
    case pb::TypeProto::kMapType:
      check_element_type(proto.map_type().key_type(), who);
      return check_type(proto.map_type().value_type(), who);
    default:
      return;
  }
}

ValueType to_value_type(const pb::TypeProto& proto) {
  ValueType type;
  if (!proto.has_tensor_type()) {
    type.is_container = proto.value_case() != pb::TypeProto::VALUE_NOT_SET;
    return type;
  }
  type.dtype = static_cast<DType>(proto.tensor_type().elem_type());
  if (proto.tensor_type().has_shape()) {
    std::vector<Dim> dims;
    for (const auto& dim : proto.tensor_type().shape().dim()) dims.push_back(to_dim(dim));
    type.shape.emplace(std::move(dims));
  }
  return type;
}

void put_type(const ValueType& type, pb::TypeProto& proto) {
  if (type.is_container) return;
  if (type.dtype == DType::undefined) return proto.Clear();
  pb::TypeProto::Tensor& tensor = *proto.mutable_tensor_type();
  tensor.set_elem_type(static_cast<int>(type.dtype));
  if (!type.shape) return tensor.clear_shape();
  pb::TensorShapeProto& shape = *tensor.mutable_shape();
  if (shape.dim_size() != type.shape->rank()) shape.clear_dim();
  for (int i = 0; i < type.shape->rank(); ++i) {
    auto& dim = i < shape.dim_size() ? *shape.mutable_dim(i) : *shape.add_dim();
    const Dim& source = (*type.shape)[i];
    dim.clear_value();
    if (source.is_known()) dim.set_dim_value(source.value());
    if (!source.symbol().empty()) dim.set_dim_param(source.symbol());
  }
}

}  // namespace graft::onnx
