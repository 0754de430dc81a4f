#pragma once

#include <simt.h>

#include <cstdint>

namespace graft {

struct PhiloxWords {
  std::uint32_t word[4];
};

/// One block of Philox 4x32-10: the words that `Philox(seed, stream).block(counter)` of
/// core/base/rng.h gives.
__device__ inline PhiloxWords philox_block(std::uint64_t seed, std::uint64_t stream,
                                           std::uint64_t counter) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  auto x0 = static_cast<std::uint32_t>(counter);
  auto x1 = static_cast<std::uint32_t>(counter >> 32);
  auto x2 = static_cast<std::uint32_t>(stream);
  auto x3 = static_cast<std::uint32_t>(stream >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMultiplier0 * x0;
    const std::uint64_t p1 = kMultiplier1 * x2;
    x0 = static_cast<std::uint32_t>(p1 >> 32) ^ x1 ^ key0;
    x1 = static_cast<std::uint32_t>(p1);
    x2 = static_cast<std::uint32_t>(p0 >> 32) ^ x3 ^ key1;
    x3 = static_cast<std::uint32_t>(p0);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return {{x0, x1, x2, x3}};
}

}  // namespace graft
