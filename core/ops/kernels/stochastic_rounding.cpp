#include "core/ops/kernels/stochastic_rounding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/ops/kernels/convert.h"
#include "core/ops/kernels/register_tile.h"

namespace graft {
namespace {

/// Of one register: g++ 12 takes longer vectors apart where they are compared.
constexpr int kLanes = 2 * kRegisterLanes;
using Shorts = LaneBits<kLanes>::Short;
using Words = LaneBits<kLanes / 2>::Whole;

template <class To, class From>
To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// Random bits for 2^33 elements that follow one another, two for each 32-bit counter. Multipliers
/// and shifts: Wellons, "Prospecting for Hash Functions" (lowbias32), 2018.
class RoundingBits {
 public:
  static constexpr std::int64_t kElements = std::int64_t{1} << 33;

  RoundingBits(const std::array<std::uint32_t, 4>& key, std::int64_t block)
      : first_(key[0]), second_(key[1] ^ (static_cast<std::uint32_t>(block) * key[2])) {}

  std::uint16_t of_one(std::int64_t place) const {
    const std::uint32_t word = hash(static_cast<std::uint32_t>(place / 2));
    return same_bits<std::array<std::uint16_t, 2>>(word)[static_cast<std::size_t>(place % 2)];
  }
  /// `place`: even.
  Shorts of_many(std::int64_t place) const {
    return same_bits<Shorts>(hash(kCount + static_cast<std::uint32_t>(place / 2)));
  }

 private:
  template <class W>
  W hash(W x) const {
    x += first_;
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x ^= second_;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    return x ^ (x >> 16);
  }

  static constexpr Words kCount =
      []<std::uint32_t... i>(std::integer_sequence<std::uint32_t, i...>) {
    return Words{i...};
  }
  (std::make_integer_sequence<std::uint32_t, kLanes / 2>());
  std::uint32_t first_;
  std::uint32_t second_;
};

/// Of the bits of f32 numbers, in halves: the random bits are added to the lower half, whose carry
/// rounds the upper one up. Only NaN could become another number by it.
template <class S>
S rounded(const S& high, const S& low, const S& random) {
  constexpr std::uint16_t kExponent = 0x7f80;
  constexpr std::uint16_t kQuiet = 0x40;
  const S sum = static_cast<S>(low + random);
  const S up = sum < low ? static_cast<S>(high + std::uint16_t{1}) : high;
  const S not_finite = low == S{} ? high : static_cast<S>(high | kQuiet);
  return static_cast<S>(high & kExponent) == static_cast<S>(S{} + kExponent) ? not_finite : up;
}

/// Every other short from `first` on.
template <int first>
Shorts every_other(const Words& a, const Words& b) {
  return [&]<int... i>(std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(same_bits<Shorts>(a), same_bits<Shorts>(b), (2 * i + first)...);
  }
  (std::make_integer_sequence<int, kLanes>());
}

void round_one(const float* x, std::int64_t place, const RoundingBits& random, BFloat16* y) {
  const auto u = std::bit_cast<std::uint32_t>(*x);
  y->bits = rounded(static_cast<std::uint16_t>(u >> 16), static_cast<std::uint16_t>(u),
                    random.of_one(place));
}

void round_many(const float* x, std::int64_t place, const RoundingBits& random, BFloat16* y) {
  constexpr int kHigh = std::endian::native == std::endian::little ? 1 : 0;
  const auto first = same_bits<Words>(load<kLanes / 2>(x));
  const auto second = same_bits<Words>(load<kLanes / 2>(x + kLanes / 2));
  const Shorts bits = rounded(every_other<kHigh>(first, second),
                              every_other<1 - kHigh>(first, second), random.of_many(place));
  std::memcpy(static_cast<void*>(y), &bits, sizeof(bits));
}

/// All of one block of random bits.
void round_in_block(const float* x, std::int64_t place, std::int64_t count,
                    const RoundingBits& random, BFloat16* y) {
  std::int64_t i = 0;
  for (; i < count && (place + i) % 2 != 0; ++i) round_one(x + i, place + i, random, y + i);
  for (; i + kLanes <= count; i += kLanes) round_many(x + i, place + i, random, y + i);
  for (; i < count; ++i) round_one(x + i, place + i, random, y + i);
}

}  // namespace

void StochasticRounding::operator()(const float* x, std::int64_t first, std::int64_t count,
                                    BFloat16* y) const {
  const std::int64_t last = first + count;
  for (std::int64_t i = first; i < last;) {
    const std::int64_t block = i / RoundingBits::kElements;
    const std::int64_t end = std::min(last, (block + 1) * RoundingBits::kElements);
    round_in_block(x + (i - first), i, end - i, {key_, block}, y + (i - first));
    i = end;
  }
}

void StochasticRounding::operator()(const double* x, std::int64_t first, std::int64_t count,
                                    BFloat16* y) const {
  constexpr std::int64_t kPiece = 256;
  std::array<float, kPiece> piece;
  for (std::int64_t i = 0; i < count; i += kPiece) {
    const std::int64_t size = std::min(kPiece, count - i);
    std::transform(x + i, x + i + size, piece.begin(), [](double v) { return convert<float>(v); });
    (*this)(piece.data(), first + i, size, y + i);
  }
}

}  // namespace graft
