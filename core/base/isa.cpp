#include "core/base/isa.h"

#include <string>

#include "core/base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace graft {
namespace {

struct Requirement {
  Isa isa;
  CpuidWords words;  // all of these bits
};

constexpr std::uint32_t bits(std::initializer_list<int> numbers) {
  std::uint32_t word = 0;
  for (const int number : numbers) word |= std::uint32_t{1} << number;
  return word;
}

// Bit numbers as in Intel's manual, volume 2A, CPUID; the levels are those of the psABI.
constexpr int kOsXsave = 27;
constexpr CpuidWords kAvx2 = {
    // SSE3, SSSE3, FMA, CMPXCHG16B, SSE4.1, SSE4.2, MOVBE, POPCNT, OSXSAVE, AVX, F16C
    .leaf_1_ecx = bits({0, 9, 12, 13, 19, 20, 22, 23, kOsXsave, 28, 29}),
    .leaf_7_ebx = bits({3, 5, 8}),      // BMI1, AVX2, BMI2
    .leaf_80000001_ecx = bits({0, 5}),  // LAHF, LZCNT
    .saved_registers = bits({1, 2}),    // XMM, YMM
};
constexpr CpuidWords kAvx512 = {
    .leaf_1_ecx = kAvx2.leaf_1_ecx,
    .leaf_7_ebx = kAvx2.leaf_7_ebx | bits({16, 17, 28, 30, 31}),  // AVX-512 F, DQ, CD, BW, VL
    .leaf_80000001_ecx = kAvx2.leaf_80000001_ecx,
    .saved_registers = kAvx2.saved_registers | bits({5, 6, 7}),  // masks, ZMM, ZMM16 and above
};
constexpr Requirement kRequirements[] = {{Isa::avx512, kAvx512}, {Isa::avx2, kAvx2}};

bool has(const CpuidWords& words, const CpuidWords& wanted) {
  const auto holds = [](auto word, auto part) { return (word & part) == part; };
  return holds(words.leaf_1_ecx, wanted.leaf_1_ecx) && holds(words.leaf_7_ebx, wanted.leaf_7_ebx) &&
         holds(words.leaf_80000001_ecx, wanted.leaf_80000001_ecx) &&
         holds(words.saved_registers, wanted.saved_registers);
}

std::string names(std::span<const Isa> isas) {
  std::string list;
  for (const Isa isa : isas) list += (list.empty() ? "" : ", ") + std::string(name(isa));
  return list;
}

}  // namespace

std::string_view name(Isa isa) {
  constexpr std::string_view kNames[] = {"native", "baseline", "avx2", "avx512"};
  return kNames[static_cast<int>(isa)];
}

CpuidWords read_cpuid() {
  CpuidWords words;
#if defined(__x86_64__)
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) words.leaf_1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) words.leaf_7_ebx = b;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d) != 0) words.leaf_80000001_ecx = c;
  if ((words.leaf_1_ecx & bits({kOsXsave})) != 0) {
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    words.saved_registers = std::uint64_t{d} << 32 | a;
  }
#endif
  return words;
}

Isa best_isa(const CpuidWords& words) {
  for (const Requirement& requirement : kRequirements) {
    if (has(words, requirement.words)) return requirement.isa;
  }
  return Isa::baseline;
}

Isa choose_isa(std::span<const Isa> built, Isa best, std::string_view wanted) {
  Isa highest = built.front();
  for (const Isa isa : built) {
    if (isa <= best) highest = isa;
  }
  if (wanted.empty()) return highest;
  for (const Isa isa : built) {
    if (name(isa) != wanted) continue;
    if (isa <= best) return isa;
    fail(ErrorKind::unsupported, "GRAFT_ISA is '", wanted,
         "', but this processor and its system run ", name(best),
         " at most: set that, or leave the variable out");
  }
  const bool is_native = built.size() == 1 && built.front() == Isa::native;
  fail(ErrorKind::argument, "GRAFT_ISA is '", wanted, "', this build has kernels for ",
       names(built),
       is_native ? "; one configured with -DGRAFT_NATIVE=OFF has them for baseline, avx2, avx512"
                 : "");
}

}  // namespace graft
