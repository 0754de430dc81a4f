#include "io/proto/data_proto.h"

#include "core/tensor/slices.h"
#include "io/proto/parse.h"
#include "io/proto/tensor_proto.h"

namespace graft::onnx {
namespace {

class DataReader {
 public:
  explicit DataReader(const ExternalReader& external) : external_(external) {}

  Tensor tensor(pb::TensorProto& from) const {
    const std::string who = "tensor '" + from.name() + "'";
    check_tensor(from, who, external_);
    return take_tensor(from, who, external_);
  }

  Sequence sequence(pb::SequenceProto& from) const {
    Sequence result;
    switch (from.elem_type()) {
      case pb::SequenceProto::TENSOR:
        for (auto& one : *from.mutable_tensor_values()) result.items.emplace_back(tensor(one));
        break;
      case pb::SequenceProto::SEQUENCE:
        for (auto& one : *from.mutable_sequence_values()) result.items.emplace_back(sequence(one));
        break;
      case pb::SequenceProto::MAP:
        for (auto& one : *from.mutable_map_values()) result.items.emplace_back(dictionary(one));
        break;
      case pb::SequenceProto::OPTIONAL:
        for (auto& one : *from.mutable_optional_values()) result.items.push_back(optional(one));
        break;
      case pb::SequenceProto::UNDEFINED:
        break;
      default:
        refuse("sequence", from.elem_type());
    }
    if (!result.items.empty() && result.items.front().is_tensor()) {
      result.dtype = result.items.front().tensor().dtype();
    }
    return result;
  }

  Dictionary dictionary(pb::MapProto& from) const {
    Dictionary result;
    if (from.key_type() == pb::TensorProto::STRING) {
      result.keys = Tensor::from_strings({from.string_keys_size()},
                                         {from.string_keys().begin(), from.string_keys().end()});
    } else {
      result.keys = Tensor::from({from.keys_size()},
                                 std::vector<std::int64_t>(from.keys().begin(), from.keys().end()));
    }
    std::vector<Tensor> values;
    for (const Datum& value : sequence(*from.mutable_values()).items) {
      values.push_back(value.tensor());
    }
    if (static_cast<std::int64_t>(values.size()) != result.keys.size()) {
      fail(ErrorKind::model, "a map has ", result.keys.size(), " keys and ", values.size(),
           " values");
    }
    result.values = values.empty() ? Tensor::zeros(DType::f32, {0}) : stack(values, 0);
    return result;
  }

  Datum optional(pb::OptionalProto& from) const {
    switch (from.elem_type()) {
      case pb::OptionalProto::TENSOR:
        return from.has_tensor_value() ? Datum(tensor(*from.mutable_tensor_value())) : Datum();
      case pb::OptionalProto::SEQUENCE:
        if (!from.has_sequence_value()) return {};
        return sequence(*from.mutable_sequence_value());
      case pb::OptionalProto::MAP:
        return from.has_map_value() ? Datum(dictionary(*from.mutable_map_value())) : Datum();
      case pb::OptionalProto::OPTIONAL:
        if (!from.has_optional_value()) return {};
        return optional(*from.mutable_optional_value());
      case pb::OptionalProto::UNDEFINED:
        return {};
      default:
        refuse("optional", from.elem_type());
    }
  }

 private:
  [[noreturn]] static void refuse(std::string_view what, int kind) {
    fail(ErrorKind::unsupported, "the elements of a ", what, " are of kind ", kind,
         ", which Graft does not read");
  }

  const ExternalReader& external_;
};

template <class Proto, class Take>
NamedDatum parse_as(std::string_view bytes, std::string_view what, const Take& take) {
  Proto proto;
  parse_message(bytes, what, proto);
  const std::string name = proto.name();
  return {name, take(proto)};
}

}  // namespace

NamedDatum parse_data(std::string_view bytes, const pb::TypeProto& type,
                      const std::filesystem::path& folder) {
  const ExternalReader external(folder);
  const DataReader reader(external);
  switch (type.value_case()) {
    case pb::TypeProto::kSequenceType:
      return parse_as<pb::SequenceProto>(bytes, "sequence",
                                         [&](auto& proto) { return reader.sequence(proto); });
    case pb::TypeProto::kOptionalType:
      return parse_as<pb::OptionalProto>(bytes, "optional",
                                         [&](auto& proto) { return reader.optional(proto); });
    case pb::TypeProto::kMapType:
      return parse_as<pb::MapProto>(bytes, "map",
                                    [&](auto& proto) { return reader.dictionary(proto); });
    default:
      return parse_as<pb::TensorProto>(bytes, "tensor",
                                       [&](auto& proto) { return reader.tensor(proto); });
  }
}

}  // namespace graft::onnx
