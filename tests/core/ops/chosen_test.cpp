#include "core/ops/chosen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(ChosenOps, AreAllInThisBuild) {
  EXPECT_EQ(chosen_models(), "");
  EXPECT_EQ(missing_op(), "not known to Graft");
}

}  // namespace
}  // namespace graft
