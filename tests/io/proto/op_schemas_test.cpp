#include "io/proto/op_schemas.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace graft::onnx {
namespace {

int version_of(const pb::OpSchema* schema) {
  return schema == nullptr ? 0 : schema->SinceVersion();
}

TEST(OpSchemas, HoldsWhatTheRegistryHolds) {
  std::set<std::pair<std::string, std::string>> ops;  // domain, name
  for (const pb::OpSchema& schema : pb::OpSchemaRegistry::get_all_schemas_with_history()) {
    ops.emplace(schema.domain(), schema.Name());
  }
  EXPECT_GT(ops.size(), 200U);
  ops.insert({{"", "NoSuchOp"}, {"ai.onnx", "Conv"}, {"com.example", "Conv"}});
  for (const auto& [domain, op] : ops) {
    for (int opset = -1; opset <= 40; ++opset) {
      const pb::OpSchema* const wanted = pb::OpSchemaRegistry::Schema(op, opset, domain);
      const pb::OpSchema* const found = OpSchemas::instance().GetSchema(op, opset, domain);
      ASSERT_EQ(version_of(found), version_of(wanted)) << domain << " " << op << " " << opset;
      if (found == nullptr) continue;
      EXPECT_EQ(found->Name(), op);
      EXPECT_EQ(found->deprecated(), wanted->deprecated()) << op << " " << opset;
      EXPECT_EQ(found->min_input(), wanted->min_input()) << op << " " << opset;
      EXPECT_EQ(found->max_output(), wanted->max_output()) << op << " " << opset;
    }
  }
}

TEST(OpSchemas, ThreadsFindTheSameSchema) {
  std::vector<const pb::OpSchema*> found(4);
  std::vector<std::thread> threads;
  for (const pb::OpSchema*& one : found) {
    threads.emplace_back([&one] { one = OpSchemas::instance().GetSchema("Gemm", 13, ""); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const pb::OpSchema* one : found) EXPECT_EQ(one, found.front());
  EXPECT_EQ(version_of(found.front()), 13);
}

}  // namespace
}  // namespace graft::onnx
