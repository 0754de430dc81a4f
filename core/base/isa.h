#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace graft {

/// Instructions that kernels are compiled for. From `baseline` on each includes those before it.
enum class Isa {
  native,    ///< those of the machine that built Graft
  baseline,  ///< any processor of its kind
  avx2,      ///< x86-64-v3: AVX2, FMA, BMI, F16C
  avx512,    ///< x86-64-v4: AVX-512 F, BW, CD, DQ, VL
};

/// "native", "baseline", "avx2", "avx512": what GRAFT_ISA takes.
std::string_view name(Isa isa);

/// What the instructions CPUID and XGETBV say; all 0 on processors that lack them.
struct CpuidWords {
  std::uint32_t leaf_1_ecx = 0;
  std::uint32_t leaf_7_ebx = 0;
  std::uint32_t leaf_80000001_ecx = 0;
  /// XCR0: the registers that the system saves when threads take turns.
  std::uint64_t saved_registers = 0;
};
CpuidWords read_cpuid();

/// The highest that a processor, and the system on it, run.
Isa best_isa(const CpuidWords& words);

/// One of `built`, in rising order: that of the name `wanted` or, if that is empty, the highest up
/// to `best`. Throws Error{argument} where `wanted` is no name of these, and Error{unsupported}
/// where the processor lacks it.
Isa choose_isa(std::span<const Isa> built, Isa best, std::string_view wanted);

}  // namespace graft
