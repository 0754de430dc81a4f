#include "io/op_types.h"

#include <onnx/defs/data_type_utils.h>

#include <algorithm>
#include <string>

#include "io/proto/op_schemas.h"

namespace graft::onnx {
namespace {

/// ONNX's name of a tensor's type, as schemas hold it.
std::string type_string(DType type) {
  pb::TypeProto proto;
  proto.mutable_tensor_type()->set_elem_type(static_cast<int>(type));
  return *pb::Utils::DataTypeUtils::ToType(proto);
}

std::vector<bool> takes(const std::vector<pb::OpSchema::FormalParameter>& slots, int count,
                        const std::string& type) {
  std::vector<bool> result;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    // The last one stands for all that follow.
    const auto* const slot = slots.empty() ? nullptr : &slots[std::min(i, slots.size() - 1)];
    result.push_back(slot != nullptr && std::ranges::any_of(slot->GetTypes(), [&](const auto& one) {
                       return *one == type;
                     }));
  }
  return result;
}

}  // namespace

std::optional<SlotTypes> slots_that_take(const Node& node, std::int64_t opset, DType type) {
  if (!node.domain().empty()) return std::nullopt;
  const pb::OpSchema* const schema =
      OpSchemas::instance().GetSchema(node.op_type(), static_cast<int>(opset), node.domain());
  if (schema == nullptr) return std::nullopt;
  const std::string wanted = type_string(type);
  return SlotTypes{takes(schema->inputs(), node.input_count(), wanted),
                   takes(schema->outputs(), node.output_count(), wanted)};
}

}  // namespace graft::onnx
