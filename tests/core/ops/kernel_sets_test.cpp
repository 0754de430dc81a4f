#include "core/ops/kernel_sets.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/core/error_of.h"

namespace graft {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// GRAFT_ISA for one test.
class Wanted {
 public:
  explicit Wanted(std::string_view isa) { setenv("GRAFT_ISA", std::string(isa).c_str(), 1); }
  ~Wanted() { unsetenv("GRAFT_ISA"); }
  Wanted(const Wanted&) = delete;
  Wanted& operator=(const Wanted&) = delete;
};

TEST(KernelSets, RiseFromWhatAnyProcessorRuns) {
  const std::span<const KernelSet> sets = kernel_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_LE(sets.front().isa, Isa::baseline);
  for (std::size_t i = 1; i < sets.size(); ++i) EXPECT_LT(sets[i - 1].isa, sets[i].isa);
}

TEST(KernelSets, TheEnvironmentNamesOne) {
  const std::string_view lowest = name(kernel_sets().front().isa);
  const Wanted wanted(lowest);
  EXPECT_EQ(&chosen_kernel_set(), &kernel_sets().front());
  EXPECT_THAT(describe_kernel_sets(), StartsWith(lowest));
}

TEST(KernelSets, ANameThatIsNoneIsRefused) {
  const Wanted wanted("mmx");
  const Error error = error_of([] { chosen_kernel_set(); });
  EXPECT_EQ(error.kind(), ErrorKind::argument);
  EXPECT_THAT(error.what(), HasSubstr("GRAFT_ISA is 'mmx'"));
  EXPECT_THAT(error.what(), HasSubstr(name(kernel_sets().front().isa)));
}

TEST(KernelSets, AnEmptyNameCountsAsNone) {
  const Wanted wanted("");
  EXPECT_EQ(chosen_kernel_set().isa,
            kernel_sets().size() == 1 ? kernel_sets().front().isa : best_isa(read_cpuid()));
}

}  // namespace
}  // namespace graft
