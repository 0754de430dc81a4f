#include <array>
#include <utility>

#include "core/base/error.h"
#include "io/proto/graph_validator.h"
#include "io/proto/sparse_tensor.h"
#include "io/proto/tensor_proto.h"
#include "io/proto/type_proto.h"

namespace graft::onnx {
namespace {

using Proto = pb::AttributeProto;

/// Each type with whether its field is there.
std::array<std::pair<Proto::AttributeType, bool>, 14> fields_of(const Proto& attribute) {
  return {{{Proto::FLOAT, attribute.has_f()},
           {Proto::INT, attribute.has_i()},
           {Proto::STRING, attribute.has_s()},
           {Proto::TENSOR, attribute.has_t()},
           {Proto::GRAPH, attribute.has_g()},
           {Proto::SPARSE_TENSOR, attribute.has_sparse_tensor()},
           {Proto::TYPE_PROTO, attribute.has_tp()},
           {Proto::FLOATS, attribute.floats_size() > 0},
           {Proto::INTS, attribute.ints_size() > 0},
           {Proto::STRINGS, attribute.strings_size() > 0},
           {Proto::TENSORS, attribute.tensors_size() > 0},
           {Proto::GRAPHS, attribute.graphs_size() > 0},
           {Proto::SPARSE_TENSORS, attribute.sparse_tensors_size() > 0},
           {Proto::TYPE_PROTOS, attribute.type_protos_size() > 0}}};
}

/// Messages have no value by default; numbers, texts and lists do.
bool needs_field(Proto::AttributeType type) {
  return type == Proto::TENSOR || type == Proto::GRAPH || type == Proto::SPARSE_TENSOR ||
         type == Proto::TYPE_PROTO;
}

void check_fields_fit(const Proto& attribute, std::string_view who) {
  const bool refers = !attribute.ref_attr_name().empty();
  for (const auto& [type, is_there] : fields_of(attribute)) {
    if (is_there && (refers || type != attribute.type())) {
      fail(ErrorKind::model, who, " is of type ", Proto::AttributeType_Name(attribute.type()),
           refers ? " and refers to another attribute" : "", ", but holds a value of type ",
           Proto::AttributeType_Name(type));
    }
    if (!is_there && !refers && type == attribute.type() && needs_field(type)) {
      fail(ErrorKind::model, who, " is of type ", Proto::AttributeType_Name(type),
           ", but holds no value");
    }
  }
}

}  // namespace

void check_attribute(const pb::AttributeProto& attribute, std::string_view who, bool in_function,
                     const ExternalReader& external) {
  const std::string name = text(who, ": attribute '", attribute.name(), "'");
  if (attribute.name().empty()) fail(ErrorKind::model, who, ": an attribute has no name");
  if (!attribute.has_type() || attribute.type() == Proto::UNDEFINED) {
    fail(ErrorKind::model, name, " has no type that ONNX defines");
  }
  if (!attribute.ref_attr_name().empty() && !in_function) {
    fail(ErrorKind::model, name, " refers to '", attribute.ref_attr_name(),
         "', which only a function's body may do");
  }
  check_fields_fit(attribute, name);
  if (attribute.has_t()) check_tensor(attribute.t(), name, external);
  for (const auto& tensor : attribute.tensors()) check_tensor(tensor, name, external);
  if (attribute.has_sparse_tensor()) check_sparse_tensor(attribute.sparse_tensor(), name);
  for (const auto& sparse : attribute.sparse_tensors()) check_sparse_tensor(sparse, name);
  if (attribute.has_tp()) check_type(attribute.tp(), name);
  for (const auto& type : attribute.type_protos()) check_type(type, name);
}

}  // namespace graft::onnx
