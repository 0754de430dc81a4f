#pragma once

// Products of f32 by tiles of bf16 (adr/0086). A number is the sum of three of bf16: its first 8
// bits, the next 8 and the last 8. Of the nine products of two such sums six are added up; the
// others are below 2^-25 of the whole. Products are exact and sums f32, so the result has the error
// of f32 sums or less.
#include "core/ops/kernels/amx_tiles.h"
#include "core/ops/kernels/lanes_math.h"

#if defined(GRAFT_HAS_AMX_TILES)

namespace graft {

inline constexpr int kSplitParts = 3;
inline constexpr std::int64_t kSplitSide = 2 * kAmxSide;  ///< rows of a', or columns of b'
inline constexpr std::int64_t kSplitTerms = 128;  ///< of each sum: two panels fill the first cache
inline constexpr std::int64_t kSplitChunks = kSplitTerms / kAmxInner;

/// Numbers of a product's operand: those of one `outer`, a row of a' or a column of b', are the
/// terms of its sums.
struct SplitOperand {
  const float* data;
  std::int64_t step;  ///< from one outer to the next, or from term to term
  bool is_by_term;    ///< outers lie side by side
  float factor = 1.0F;

  const float* at(std::int64_t outer, std::int64_t term) const {
    return data + (is_by_term ? term * step + outer : outer * step + term);
  }
};

/// A part of an operand: up to kSplitSide outers of up to kSplitTerms terms.
struct SplitRange {
  std::int64_t outer;
  std::int64_t outers;
  std::int64_t term;
  std::int64_t terms;

  std::int64_t chunks() const { return (terms + kAmxInner - 1) / kAmxInner; }
};

/// Three tiles of bf16, one a part, of each 16 outers and 32 terms; zeros past the last. Term i of
/// the 32 makes a pair with term i + 16. A row of a left tile has the pairs of an outer, a row of a
/// right one a pair of all outers. Where a part would be infinite or NaN, plain numbers instead:
/// [terms][kSplitSide].
struct alignas(64) SplitPanel {
  static constexpr std::int64_t kTilePairs = kAmxSide * kAmxInner / 2;

  Bf16Pair pairs[kSplitChunks][kSplitParts][2][kTilePairs];
  /// A line of its own, so that panels lie no large power of two apart.
  alignas(64) bool is_plain;

  float* plain() { return reinterpret_cast<float*>(pairs); }
  const float* plain() const { return reinterpret_cast<const float*>(pairs); }
};

namespace detail {

using Words = LaneBits<16>::Whole;
inline constexpr std::uint32_t kFirstHalf = 0xffff0000U;

inline Words words_of(const Lanes16& v) {
  Words words;
  std::memcpy(&words, &v, sizeof(words));
  return words;
}
inline Lanes16 numbers_of(const Words& words) {
  Lanes16 v;
  std::memcpy(&v, &words, sizeof(v));
  return v;
}
inline Words pairs_of(const Words& first, const Words& second) {
  return (first >> 16) | (second & kFirstHalf);
}

/// The pairs of the parts of two vectors. What is infinite or NaN, or would be rounded to it, makes
/// NaN of `check`.
inline void split(const Lanes16& first, const Lanes16& second, Words (&parts)[kSplitParts],
                  Lanes16& check) {
  const auto rounded = [](const Lanes16& v) {
    return numbers_of((words_of(v) + 0x8000U) & kFirstHalf);
  };
  const auto cut = [](const Lanes16& v) { return numbers_of(words_of(v) & kFirstHalf); };
  const Lanes16 first_high = rounded(first);
  const Lanes16 second_high = rounded(second);
  const Lanes16 first_rest = first - first_high;
  const Lanes16 second_rest = second - second_high;
  const Lanes16 first_middle = cut(first_rest);
  const Lanes16 second_middle = cut(second_rest);
  const Lanes16 first_low = first_rest - first_middle;
  const Lanes16 second_low = second_rest - second_middle;
  parts[0] = pairs_of(words_of(first_high), words_of(second_high));
  parts[1] = pairs_of(words_of(first_middle), words_of(second_middle));
  parts[2] = pairs_of(words_of(first_low), words_of(second_low));
  check += first_low * 0.0F;
  check += second_low * 0.0F;
}

}  // namespace detail

}  // namespace graft

#endif
