#pragma once

#include <simt.h>

#include <bit>
#include <cstdint>

#include "core/base/float16.h"
#include "core/device/cuda/philox.h"

namespace graft {

/// The bf16 number that StochasticRounding(Philox(seed, stream)) makes of the element at `place`.
class DeviceRounding {
 public:
  __device__ DeviceRounding(std::uint64_t seed, std::uint64_t stream)
      : key_(philox_block(seed, stream, 0)) {}

  __device__ BFloat16 operator()(float x, std::int64_t place) const {
    const auto u = std::bit_cast<std::uint32_t>(x);
    BFloat16 y;
    if ((u & 0x7f800000U) == 0x7f800000U) {  // infinity stays; NaN must not become it
      y.bits = static_cast<std::uint16_t>((u & 0xffffU) == 0 ? u >> 16 : (u >> 16) | 0x40U);
    } else {
      y.bits = static_cast<std::uint16_t>((u + bits_for(place)) >> 16);
    }
    return y;
  }

 private:
  /// 16 random bits, two for each word of a hash of the place.
  __device__ std::uint32_t bits_for(std::int64_t place) const {
    constexpr int kBlockBits = 33;
    const auto block = static_cast<std::uint32_t>(place >> kBlockBits);
    auto word = static_cast<std::uint32_t>((place & ((std::int64_t{1} << kBlockBits) - 1)) / 2);
    word += key_.word[0];
    word = (word ^ (word >> 16)) * 0x7feb352dU;
    word ^= key_.word[1] ^ (block * key_.word[2]);
    word = (word ^ (word >> 15)) * 0x846ca68bU;
    word ^= word >> 16;
    return place % 2 == 0 ? word & 0xffffU : word >> 16;
  }

  PhiloxWords key_;
};

}  // namespace graft
