#include "core/base/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Isa kPortable[] = {Isa::baseline, Isa::avx2, Isa::avx512};
constexpr Isa kNative[] = {Isa::native};

/// As CPUID and XGETBV answer on an Intel Ice Lake under Linux.
CpuidWords ice_lake() {
  return {.leaf_1_ecx = 0xfffa3203,
          .leaf_7_ebx = 0xf1bf07ab,
          .leaf_80000001_ecx = 0x121,
          .saved_registers = 0xe7};
}

TEST(Isa, TheBestIsWhatProcessorAndSystemRun) {
  EXPECT_EQ(best_isa({}), Isa::baseline);
  EXPECT_EQ(best_isa(ice_lake()), Isa::avx512);

  CpuidWords haswell = ice_lake();
  haswell.leaf_7_ebx = 0x7ab;
  EXPECT_EQ(best_isa(haswell), Isa::avx2);
  CpuidWords without_mask_registers = ice_lake();
  without_mask_registers.saved_registers = 0x7;  // the system does not save what AVX-512 adds
  EXPECT_EQ(best_isa(without_mask_registers), Isa::avx2);
  CpuidWords without_wide_registers = ice_lake();
  without_wide_registers.saved_registers = 0x3;
  EXPECT_EQ(best_isa(without_wide_registers), Isa::baseline);
}

TEST(Isa, OneMissingInstructionIsEnoughToDoWithoutASet) {
  for (const int bit : {12, 22, 28, 29}) {  // FMA, MOVBE, AVX, F16C
    CpuidWords words = ice_lake();
    words.leaf_1_ecx &= ~(std::uint32_t{1} << bit);
    EXPECT_EQ(best_isa(words), Isa::baseline) << bit;
  }
  for (const int bit : {3, 5, 8}) {  // BMI1, AVX2, BMI2
    CpuidWords words = ice_lake();
    words.leaf_7_ebx &= ~(std::uint32_t{1} << bit);
    EXPECT_EQ(best_isa(words), Isa::baseline) << bit;
  }
  for (const int bit : {16, 17, 28, 30, 31}) {  // AVX-512 F, DQ, CD, BW, VL
    CpuidWords words = ice_lake();
    words.leaf_7_ebx &= ~(std::uint32_t{1} << bit);
    EXPECT_EQ(best_isa(words), Isa::avx2) << bit;
  }
  CpuidWords without_lzcnt = ice_lake();
  without_lzcnt.leaf_80000001_ecx = 0x101;
  EXPECT_EQ(best_isa(without_lzcnt), Isa::baseline);
}

TEST(Isa, TheHighestThatIsBuiltAndRunsIsChosen) {
  EXPECT_EQ(choose_isa(kPortable, Isa::avx512, ""), Isa::avx512);
  EXPECT_EQ(choose_isa(kPortable, Isa::avx2, ""), Isa::avx2);
  EXPECT_EQ(choose_isa(kPortable, Isa::baseline, ""), Isa::baseline);
  EXPECT_EQ(choose_isa(kNative, Isa::avx512, ""), Isa::native);
  EXPECT_EQ(choose_isa(kNative, Isa::baseline, ""), Isa::native);
}

TEST(Isa, ALowerOneIsChosenByName) {
  EXPECT_EQ(choose_isa(kPortable, Isa::avx512, "avx2"), Isa::avx2);
  EXPECT_EQ(choose_isa(kPortable, Isa::avx512, "baseline"), Isa::baseline);
  EXPECT_EQ(choose_isa(kNative, Isa::avx2, "native"), Isa::native);
}

TEST(Isa, WhatTheProcessorLacksIsRefused) {
  const Error error = error_of([] { choose_isa(kPortable, Isa::avx2, "avx512"); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'avx512'"), HasSubstr("run avx2 at most")));
}

TEST(Isa, WhatTheBuildLacksIsRefused) {
  const Error unknown = error_of([] { choose_isa(kPortable, Isa::avx512, "avx1024"); });
  EXPECT_EQ(unknown.kind(), ErrorKind::argument);
  EXPECT_THAT(unknown.what(), AllOf(HasSubstr("'avx1024'"), HasSubstr("baseline, avx2, avx512")));
  const Error native = error_of([] { choose_isa(kNative, Isa::avx512, "avx2"); });
  EXPECT_THAT(native.what(), AllOf(HasSubstr("for native"), HasSubstr("-DGRAFT_NATIVE=OFF")));
}

TEST(Isa, AgreesWithTheCompilersRuntime) {
#if defined(__x86_64__)
  const Isa best = best_isa(read_cpuid());
  EXPECT_EQ(best == Isa::avx512, __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(best >= Isa::avx2, __builtin_cpu_supports("avx2") != 0);
#endif
}

}  // namespace
}  // namespace graft
