#include "core/base/rng.h"

#include <cmath>
#include <numbers>

namespace graft {
namespace {

std::uint64_t word_pair(const std::array<std::uint32_t, 4>& words, std::uint64_t half) {
  return (static_cast<std::uint64_t>(words[2 * half + 1]) << 32) | words[2 * half];
}

constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

/// One block for each of kLanes counters from `counter` on, word by word: the loops over lanes
/// become vector instructions.
template <int kLanes>
struct Lanes {
  using Words = std::array<std::uint32_t, kLanes>;

  Lanes(std::uint64_t counter, std::uint64_t stream) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t at = counter + i;
      x0[i] = static_cast<std::uint32_t>(at);
      x1[i] = static_cast<std::uint32_t>(at >> 32);
    }
    x2.fill(static_cast<std::uint32_t>(stream));
    x3.fill(static_cast<std::uint32_t>(stream >> 32));
  }

  void run(std::uint64_t seed) {
    auto key0 = static_cast<std::uint32_t>(seed);
    auto key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::uint64_t p0 = kMultiplier0 * x0[i];
        const std::uint64_t p1 = kMultiplier1 * x2[i];
        x0[i] = static_cast<std::uint32_t>(p1 >> 32) ^ x1[i] ^ key0;
        x1[i] = static_cast<std::uint32_t>(p1);
        x2[i] = static_cast<std::uint32_t>(p0 >> 32) ^ x3[i] ^ key1;
        x3[i] = static_cast<std::uint32_t>(p0);
      }
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
  }

  Words x0, x1, x2, x3;
};

}  // namespace

std::array<std::uint32_t, 4> Philox::block(std::uint64_t counter) const {
  Lanes<1> lanes(counter, stream_);
  lanes.run(seed_);
  return {lanes.x0[0], lanes.x1[0], lanes.x2[0], lanes.x3[0]};
}

void Philox::blocks(std::uint64_t counter, std::uint32_t* words) const {
  Lanes<kBlocks> lanes(counter, stream_);
  lanes.run(seed_);
  for (std::size_t i = 0; i < kBlocks; ++i) {
    words[4 * i] = lanes.x0[i];
    words[4 * i + 1] = lanes.x1[i];
    words[4 * i + 2] = lanes.x2[i];
    words[4 * i + 3] = lanes.x3[i];
  }
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
