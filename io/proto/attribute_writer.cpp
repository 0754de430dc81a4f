#include <array>
#include <utility>

#include "core/base/at.h"
#include "io/proto/parse.h"
#include "io/proto/tensor_proto.h"
#include "io/proto/writer.h"

namespace graft::onnx {
namespace {

/// ONNX's name for each alternative of AttributeValue.
pb::AttributeProto::AttributeType type_of(const AttributeValue& value) {
  using Proto = pb::AttributeProto;
  static constexpr std::array<Proto::AttributeType, std::variant_size_v<AttributeValue>> kTypes{
      Proto::UNDEFINED, Proto::INT,    Proto::FLOAT,   Proto::STRING, Proto::INTS,  Proto::FLOATS,
      Proto::STRINGS,   Proto::TENSOR, Proto::TENSORS, Proto::GRAPH,  Proto::GRAPHS};
  return kTypes.at(value.index());
}

/// Writes one kind of value. Scalars that hold zero are written where the message is new or has
/// them already: some writers leave them out.
class ValueWriter {
 public:
  ValueWriter(pb::AttributeProto& into, bool is_new, ExternalWriter* external)
      : into_(into), is_new_(is_new), external_(external) {}

  void operator()(const OpaqueValue&) const {}
  void operator()(std::int64_t value) const {
    if (value != 0 || is_new_ || into_.has_i()) into_.set_i(value);
  }
  void operator()(float value) const {
    if (value != 0 || is_new_ || into_.has_f()) into_.set_f(value);
  }
  void operator()(const std::string& value) const {
    if (!value.empty() || is_new_ || into_.has_s()) into_.set_s(value);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    into_.mutable_ints()->Assign(values.begin(), values.end());
  }
  void operator()(const std::vector<float>& values) const {
    into_.mutable_floats()->Assign(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) into_.add_strings(value);
  }
  void operator()(const Tensor& tensor) const {
    if (!into_.has_t()) *into_.mutable_t() = new_tensor_proto();
    put_tensor(tensor, *into_.mutable_t(), external_);
  }
  void operator()(const std::vector<Tensor>& tensors) const {
    const auto count = static_cast<int>(tensors.size());
    while (into_.tensors_size() > count) into_.mutable_tensors()->RemoveLast();
    for (int i = 0; i < count; ++i) {
      if (i >= into_.tensors_size()) *into_.add_tensors() = new_tensor_proto();
      put_tensor(at(tensors, i), *into_.mutable_tensors(i), external_);
    }
  }
  void operator()(const std::shared_ptr<Graph>& body) const {
    put_graph(*body, *into_.mutable_g(), external_);
  }
  void operator()(const std::vector<std::shared_ptr<Graph>>& bodies) const {
    for (const auto& body : bodies) put_graph(*body, *into_.add_graphs(), external_);
  }

 private:
  pb::AttributeProto& into_;
  bool is_new_;
  ExternalWriter* external_;
};

}  // namespace

void put_attribute(const Attribute& attribute, pb::AttributeProto& into, ExternalWriter* external) {
  into = unpack<pb::AttributeProto>(attribute.preserved);
  const bool is_opaque = std::holds_alternative<OpaqueValue>(attribute.value);
  const bool same_type = into.has_type() && (is_opaque || into.type() == type_of(attribute.value));
  if (!same_type) {
    if (is_opaque) {
      fail(ErrorKind::argument, "attribute '", attribute.name, "' has no value to write");
    }
    into.Clear();
    into.set_type(type_of(attribute.value));
  }
  into.set_name(attribute.name);
  if (!attribute.reference.empty()) {
    into.set_ref_attr_name(attribute.reference);
    return;
  }
  std::visit(ValueWriter(into, !same_type, external), attribute.value);
}

}  // namespace graft::onnx
