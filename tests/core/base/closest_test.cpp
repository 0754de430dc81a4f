#include "core/base/closest.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

using Names = std::vector<std::string>;

TEST(Closest, FindsSlipsOfTheKeyboardBestFirst) {
  EXPECT_EQ(closest("pool_ot", {"conv_out", "pool_out", "pool_o", "x"}),
            (Names{"pool_o", "pool_out"}));
  EXPECT_EQ(closest("Logits", {"logits", "labels"}), Names{"logits"});
}

TEST(Closest, FindsPartsOfNames) {
  EXPECT_EQ(closest("fc1", {"/model/fc1/Gemm_output_0", "fc", "conv"}),
            (Names{"fc", "/model/fc1/Gemm_output_0"}));
}

TEST(Closest, ListsNoStrangersNoRepeatsAndNoMoreThanAsked) {
  EXPECT_TRUE(closest("abcdef", {"uvwxyz", "", "q"}).empty());
  EXPECT_TRUE(closest("", {"a", "b"}).empty());
  EXPECT_EQ(closest("aa1", {"aa2", "aa2", "aa3", "aa4"}, 2), (Names{"aa2", "aa3"}));
}

TEST(Closest, QuotesLists) {
  EXPECT_EQ(quoted_list({"a", "b"}), "'a', 'b'");
  EXPECT_EQ(quoted_list({}), "");
}

}  // namespace
}  // namespace graft
