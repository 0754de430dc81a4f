#include "io/proto/op_schemas.h"

#include <onnx/common/constants.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace graft::onnx {
namespace {

/// A schema that may not be made yet.
struct Entry {
  const SchemaMaker* maker;
  std::unique_ptr<pb::OpSchema> schema{};

  const pb::OpSchema* get() {
    if (schema == nullptr) {
      auto made = std::make_unique<pb::OpSchema>(maker->make());
      made->Finalize();
      schema = std::move(made);
    }
    return schema.get();
  }
};

using DomainAndOp = std::pair<std::string_view, std::string_view>;

}  // namespace

struct OpSchemas::State {
  std::mutex mutex;
  std::map<DomainAndOp, std::vector<Entry>> entries;  // of each op, from the newest on
};

OpSchemas::OpSchemas() : state_(std::make_unique<State>()) {
  for (const SchemaMaker& maker : schema_makers()) {
    state_->entries[{maker.domain, maker.op}].push_back({&maker});
  }
  for (auto& [key, of_op] : state_->entries) {
    std::ranges::sort(of_op, std::greater(),
                      [](const Entry& entry) { return entry.maker->version; });
  }
}

const OpSchemas& OpSchemas::instance() {
  // Not destroyed: freeing schemas would only delay the end of the process.
  static const OpSchemas& schemas = *new OpSchemas;
  return schemas;
}

const pb::OpSchema* OpSchemas::GetSchema(const std::string& op, int opset,
                                         const std::string& domain) const {
  const auto& domains = pb::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  if (!domains.contains(domain)) return nullptr;
  if (domain != pb::ONNX_DOMAIN && domain != pb::AI_ONNX_ML_DOMAIN) {
    return pb::OpSchemaRegistry::Schema(op, opset, domain);
  }
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto of_op = state_->entries.find({domain, op});
  if (of_op == state_->entries.end()) return nullptr;
  const auto found = std::ranges::find_if(
      of_op->second, [&](const Entry& entry) { return entry.maker->version <= opset; });
  return found == of_op->second.end() ? nullptr : found->get();
}

}  // namespace graft::onnx
