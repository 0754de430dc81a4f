#include "core/ops/chosen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/kernel.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

TEST(ChosenOps, AreThoseThatWereLookedUp) {
  remember_lookups();
  ASSERT_NE(OpRegistry::instance().find("NonZero"), nullptr);
  ASSERT_NE(OpRegistry::instance().find("SgdUpdate", "ai.graft"), nullptr);
  EXPECT_EQ(OpRegistry::instance().find("NoSuchOp"), nullptr);
  const std::vector<std::string> files = files_looked_up();
  EXPECT_TRUE(std::ranges::is_sorted(files));
  EXPECT_THAT(files, ::testing::IsSupersetOf({"nonzero", "nonzero_cpu", "update", "update_cpu"}));
  EXPECT_THAT(files, ::testing::Not(::testing::Contains("deform_conv")));
}

TEST(ChosenOps, HaveTheTypesThatKernelsWereAskedFor) {
  remember_lookups();
  Graph graph;
  Value* const x = graph.add_input("x", {DType::i16, SymShape{Dim(2)}});
  Node* const node = graph.add_node("NonZero", "", {x}, {"y"});
  node->output()->set_type({DType::i64, SymShape{Dim(1), Dim(2)}});
  KernelRequest request(*node, cpu());
  const std::vector<DType> dtypes = dtypes_looked_up();
  EXPECT_TRUE(std::ranges::is_sorted(dtypes));
  EXPECT_THAT(dtypes, ::testing::IsSupersetOf({DType::i16, DType::i64}));
  EXPECT_THAT(dtypes, ::testing::Not(::testing::Contains(DType::undefined)));
}

TEST(ChosenOps, AreAllInThisBuild) {
  EXPECT_EQ(chosen_models(), "");
  EXPECT_EQ(missing_op(), "not known to Graft");
  EXPECT_EQ(missing_kernel(), "");
}

}  // namespace
}  // namespace graft
