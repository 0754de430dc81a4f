// `graft inspect` of files that ask for gigabytes and hours: it ends soon, and stays small.
#include <gtest/gtest.h>

#include "io/onnx.h"
#include "tests/tools/bombs/bomb.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

constexpr std::size_t kLargestFile = 1 << 21;
/// Seconds are those of all threads: up to 3 on most processors that were measured, 4.7 on the
/// slowest, hours without limits. Sanitizers slow a program down and keep what it frees.
#ifdef NDEBUG
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr double kMostSeconds = 10;
#else
constexpr std::size_t kMostBytes = std::size_t{1} << 32;
constexpr double kMostSeconds = 120;
#endif

class Bombs : public ToolTest, public ::testing::WithParamInterface<Bomb> {};

TEST_P(Bombs, AreInspectedSoonInAGigabyte) {
  const std::string file = path(GetParam().name + ".onnx");
  onnx::save(GetParam().make(), file);
  ASSERT_LT(std::filesystem::file_size(file), kLargestFile);
  const Outcome outcome = run_graft({"inspect", file});
  EXPECT_TRUE(outcome.code >= 0 && outcome.code < 100) << outcome.code << ' ' << outcome.error;
  EXPECT_LT(outcome.peak_bytes, kMostBytes) << outcome.out;
  EXPECT_LT(outcome.cpu_seconds, kMostSeconds) << outcome.out;
}

std::vector<Bomb> all_bombs() {
  std::vector<Bomb> bombs = growing_bombs();
  for (const auto& more : {working_bombs(), table_bombs(), nesting_bombs(), asking_bombs()}) {
    bombs.insert(bombs.end(), more.begin(), more.end());
  }
  return bombs;
}

INSTANTIATE_TEST_SUITE_P(All, Bombs, ::testing::ValuesIn(all_bombs()),
                         [](const auto& bomb) { return bomb.param.name; });

}  // namespace
}  // namespace graft::testing
