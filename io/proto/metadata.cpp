#include "io/proto/metadata.h"

#include "io/proto/onnx_proto.h"
#include "io/proto/parse.h"

namespace graft::onnx {
namespace {

template <class Message>
const std::string* find(const Message& message, std::string_view key) {
  for (const auto& entry : message.metadata_props()) {
    if (entry.key() == key) return &entry.value();
  }
  return nullptr;
}

}  // namespace

std::string metadata_of(const Node& node, std::string_view key) {
  const auto proto = unpack<pb::NodeProto>(node.preserved);
  const std::string* const found = find(proto, key);
  return found == nullptr ? "" : *found;
}

std::string metadata_of(const Value& value, std::string_view key) {
  const auto entries = unpack<pb::GraphProto>(value.graph().preserved_of(&value).info);
  for (const auto* list : {&entries.value_info(), &entries.input(), &entries.output()}) {
    for (const pb::ValueInfoProto& info : *list) {
      if (const std::string* const found = find(info, key)) return *found;
    }
  }
  return "";
}

}  // namespace graft::onnx
