#include "core/ops/kernels/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace graft {
namespace {

/// What CPUID says; zeros where it has no such leaf.
struct CpuId {
  CpuId(unsigned leaf, unsigned part) { __get_cpuid_count(leaf, part, &a, &b, &c, &d); }

  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
};

constexpr unsigned kFeatures = 7;

/// Programs have no room for tiles unless they ask (Linux, Documentation/arch/x86/xstate.rst).
bool grants_tiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_bf16_tiles() {
  constexpr unsigned kAmxBf16 = 1U << 22;
  return (CpuId(kFeatures, 0).d & kAmxBf16) != 0;
}

bool has_bf16_vectors() {
  constexpr unsigned kAvx512Bf16 = 1U << 5;
  return (CpuId(kFeatures, 1).a & kAvx512Bf16) != 0;
}

bool is_amd() {
  constexpr unsigned kAuth = 0x68747541;  // of "AuthenticAMD"
  return CpuId(0, 0).b == kAuth;
}

}  // namespace

bool claims_amx() noexcept {
  constexpr unsigned kAmxTile = 1U << 24;
  return (CpuId(kFeatures, 0).d & kAmxTile) != 0;
}

bool shows_amx_tiles() noexcept {
  constexpr unsigned kPalettes = 0x1d;
  return CpuId(kPalettes, 0).a != 0;
}

bool may_use_amx() {
  static const bool may =
      claims_amx() && shows_amx_tiles() && has_bf16_tiles() && has_bf16_vectors() && grants_tiles();
  return may;
}

bool multiplies_bf16_faster() {
  static const bool does = may_use_amx() || (is_amd() && has_bf16_vectors());
  return does;
}

}  // namespace graft

#else

namespace graft {

bool claims_amx() noexcept {
  return false;
}
bool shows_amx_tiles() noexcept {
  return false;
}
bool may_use_amx() {
  return false;
}
bool multiplies_bf16_faster() {
  return false;
}

}  // namespace graft

#endif
