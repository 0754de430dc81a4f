#include "core/base/rng.h"

#include <cmath>
#include <numbers>

namespace graft {
namespace {

std::uint64_t word_pair(const std::array<std::uint32_t, 4>& words, std::uint64_t half) {
  return (static_cast<std::uint64_t>(words[2 * half + 1]) << 32) | words[2 * half];
}

}  // namespace

std::array<std::uint32_t, 4> Philox::block(std::uint64_t counter) const {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  std::array<std::uint32_t, 4> x{
      static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
      static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)};
  auto key0 = static_cast<std::uint32_t>(seed_);
  auto key1 = static_cast<std::uint32_t>(seed_ >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMultiplier0 * x[0];
    const std::uint64_t p1 = kMultiplier1 * x[2];
    x = {static_cast<std::uint32_t>(p1 >> 32) ^ x[1] ^ key0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ x[3] ^ key1, static_cast<std::uint32_t>(p0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

double Philox::uniform_double(std::uint64_t index) const {
  return static_cast<double>(word_pair(block(index >> 1), index & 1) >> 11) * 0x1p-53;
}

double Philox::normal(std::uint64_t index) const {
  const auto words = block(index >> 1);
  const double u = static_cast<double>((word_pair(words, 0) >> 11) + 1) * 0x1p-53;  // in (0, 1]
  const double v = static_cast<double>(word_pair(words, 1) >> 11) * 0x1p-53;
  const double radius = std::sqrt(-2.0 * std::log(u));
  const double angle = 2.0 * std::numbers::pi * v;
  return radius * ((index & 1) != 0 ? std::sin(angle) : std::cos(angle));
}

std::uint64_t Philox::below(std::uint64_t index, std::uint64_t bound) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(
      (static_cast<Wide>(word_pair(block(index >> 1), index & 1)) * bound) >> 64);
}

}  // namespace graft
