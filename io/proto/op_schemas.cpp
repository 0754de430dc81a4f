#include "io/proto/op_schemas.h"

#include <onnx/common/constants.h>
#include <onnx/defs/operator_sets.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace graft::onnx {
namespace {

using ForEachSchema = void (*)(const std::function<void(pb::OpSchema&&)>&);
using Schemas = std::unordered_map<std::string, pb::OpSchema>;

/// What each version of the default domain adds and changes, from version 1 on.
constexpr std::array<ForEachSchema, 28> kVersions{
    pb::OpSet_Onnx_ver1::ForEachSchema,  pb::OpSet_Onnx_ver2::ForEachSchema,
    pb::OpSet_Onnx_ver3::ForEachSchema,  pb::OpSet_Onnx_ver4::ForEachSchema,
    pb::OpSet_Onnx_ver5::ForEachSchema,  pb::OpSet_Onnx_ver6::ForEachSchema,
    pb::OpSet_Onnx_ver7::ForEachSchema,  pb::OpSet_Onnx_ver8::ForEachSchema,
    pb::OpSet_Onnx_ver9::ForEachSchema,  pb::OpSet_Onnx_ver10::ForEachSchema,
    pb::OpSet_Onnx_ver11::ForEachSchema, pb::OpSet_Onnx_ver12::ForEachSchema,
    pb::OpSet_Onnx_ver13::ForEachSchema, pb::OpSet_Onnx_ver14::ForEachSchema,
    pb::OpSet_Onnx_ver15::ForEachSchema, pb::OpSet_Onnx_ver16::ForEachSchema,
    pb::OpSet_Onnx_ver17::ForEachSchema, pb::OpSet_Onnx_ver18::ForEachSchema,
    pb::OpSet_Onnx_ver19::ForEachSchema, pb::OpSet_Onnx_ver20::ForEachSchema,
    pb::OpSet_Onnx_ver21::ForEachSchema, pb::OpSet_Onnx_ver22::ForEachSchema,
    pb::OpSet_Onnx_ver23::ForEachSchema, pb::OpSet_Onnx_ver24::ForEachSchema,
    pb::OpSet_Onnx_ver25::ForEachSchema, pb::OpSet_Onnx_ver26::ForEachSchema,
    pb::OpSet_Onnx_ver27::ForEachSchema, pb::OpSet_Onnx_ver28::ForEachSchema,
};

Schemas make_schemas(ForEachSchema for_each) {
  Schemas schemas;
  for_each([&](pb::OpSchema&& schema) {
    schema.Finalize();
    std::string name = schema.Name();
    schemas.emplace(std::move(name), std::move(schema));
  });
  return schemas;
}

}  // namespace

struct OpSchemas::State {
  std::mutex mutex;
  std::array<std::optional<Schemas>, kVersions.size()> made;
};

OpSchemas::OpSchemas() : state_(std::make_unique<State>()) {}

const OpSchemas& OpSchemas::instance() {
  // Not destroyed: freeing schemas would only delay the end of the process.
  static const OpSchemas& schemas = *new OpSchemas;
  return schemas;
}

const pb::OpSchema* OpSchemas::GetSchema(const std::string& op, int opset,
                                         const std::string& domain) const {
  const auto& domains = pb::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  const auto known = domains.find(domain);
  if (known == domains.end()) return nullptr;
  const bool is_listed = domain == pb::ONNX_DOMAIN && known->second.second == kVersions.size();
  if (!is_listed) return pb::OpSchemaRegistry::Schema(op, opset, domain);
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (std::size_t version = std::clamp<int>(opset, 0, kVersions.size()); version > 0; --version) {
    std::optional<Schemas>& schemas = state_->made[version - 1];
    if (!schemas) schemas = make_schemas(kVersions[version - 1]);
    const auto found = schemas->find(op);
    if (found != schemas->end()) return &found->second;
  }
  return nullptr;
}

}  // namespace graft::onnx
