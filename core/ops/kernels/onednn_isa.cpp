// Which instructions oneDNN may use. It decides at its first call, whichever that is, so this runs
// when the program is loaded.
#include <oneapi/dnnl/dnnl.hpp>

#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/ops/kernels/onednn.h"

namespace graft {
namespace {

/// Some virtual machines claim AMX and hide the palettes of its tiles (CPUID leaf 1DH), without
/// which no tile can be set up.
bool has_amx_without_tiles() {
#if defined(__x86_64__)
  constexpr unsigned kFeatures = 7;
  constexpr unsigned kPalettes = 0x1d;
  constexpr unsigned kAmxTile = 1U << 24;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool claims = __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kAmxTile) != 0;
  const bool has_palette = __get_cpuid_count(kPalettes, 0, &a, &b, &c, &d) != 0 && a != 0;
  return claims && !has_palette;
#else
  return false;
#endif
}

bool keep_to(dnnl::cpu_isa isa) {
  return dnnl::set_max_cpu_isa(isa) == dnnl::status::success;
}

}  // namespace

bool settle_onednn_isa() noexcept {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr || std::getenv("DNNL_MAX_CPU_ISA") != nullptr) {
    return false;
  }
  const char* const wanted = std::getenv("GRAFT_ISA");
  const std::string_view isa = wanted == nullptr ? "" : wanted;
  if (isa == "baseline") return keep_to(dnnl::cpu_isa::sse41);  // the least that it has
  if (isa == "avx2") return keep_to(dnnl::cpu_isa::avx2);
  return has_amx_without_tiles() && keep_to(dnnl::cpu_isa::avx512_core_fp16);
}

}  // namespace graft
