// Which instructions oneDNN may use. It decides at its first call, whichever that is, so this runs
// when the program is loaded.
#include <oneapi/dnnl/dnnl.hpp>

#include <cstdlib>
#include <string_view>

#include "core/ops/kernels/amx.h"
#include "core/ops/kernels/onednn.h"

namespace graft {
namespace {

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
  return claims_amx() && !shows_amx_tiles() && keep_to(dnnl::cpu_isa::avx512_core_fp16);
}

}  // namespace graft
