#pragma once

// Operands of products of f32 by tiles of bf16 (adr/0086). A number is the sum of three of bf16:
// its first 8 bits, the next 8 and the last 8. Of the nine products of two such sums six are added
// up; the others are at most 2^-22 of the whole, in the mean some 2^-26 and of any sign. Products
// are exact and sums f32, so the result has the error of f32 sums or less.
#include "core/ops/kernels/amx_tiles.h"
#include "core/ops/kernels/lanes_math.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {

inline constexpr int kParts = 3;

inline constexpr std::int64_t kPanelSide = 2 * kBf16Side;  ///< rows of a', or columns of b'
inline constexpr std::int64_t kPanelTerms = 128;           ///< two panels fill a first cache
inline constexpr std::int64_t kPanelChunks = kPanelTerms / kBf16Inner;

inline std::int64_t panels_of(std::int64_t count) {
  return (count + kPanelSide - 1) / kPanelSide;
}
inline std::int64_t term_blocks_of(std::int64_t count) {
  return (count + kPanelTerms - 1) / kPanelTerms;
}

/// Numbers of a product's operand: those of one `outer`, a row of a' or a column of b', are the
/// terms of its sums.
struct PanelOperand {
  const float* data;
  std::int64_t step;  ///< from one outer to the next, or from term to term
  bool is_by_term;    ///< outers lie side by side
  float factor = 1.0F;

  const float* at(std::int64_t outer, std::int64_t term) const {
    return data + (is_by_term ? term * step + outer : outer * step + term);
  }
};

/// A part of an operand.
struct PanelRange {
  std::int64_t outer;
  std::int64_t outers;
  std::int64_t term;
  std::int64_t terms;

  /// The panel's of `count` outers, and the block's of `all_terms` that begins with `term`.
  static PanelRange of(std::int64_t panel, std::int64_t count, std::int64_t term,
                       std::int64_t all_terms) {
    const std::int64_t outer = panel * kPanelSide;
    return {outer, std::min(kPanelSide, count - outer), term,
            std::min(kPanelTerms, all_terms - term)};
  }
  std::int64_t chunks() const { return (terms + kBf16Inner - 1) / kBf16Inner; }
};

inline constexpr std::int64_t kTilePairs = kBf16Side * kBf16Inner / 2;
/// Tiles of 32 terms, for each part one of the first and one of the next 16 outers; zeros past the
/// last. Term i of the 32 makes a pair with term i + 16. A row of a left tile has the pairs of an
/// outer, a row of a right one a pair of all outers.
using PanelChunk = Bf16Pair[kParts][2][kTilePairs];

/// Where parts would be infinite or NaN, plain numbers instead: [terms][kPanelSide].
struct alignas(64) OperandPanel {
  PanelChunk chunks[kPanelChunks];
  /// A line of its own, so that panels lie no large power of two apart.
  alignas(64) bool is_plain;

  float* plain() { return reinterpret_cast<float*>(chunks); }
  const float* plain() const { return reinterpret_cast<const float*>(chunks); }
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
/// Of numbers of bf16 in the first halves of words.
inline Words join(const Words& first, const Words& second) {
  return (first >> 16) | (second & kFirstHalf);
}

/// The pairs of the parts of two vectors. What is infinite or NaN, or would be rounded to it, makes
/// NaN of `check`.
inline void split(const Lanes16& first, const Lanes16& second, Words (&parts)[kParts],
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
  parts[0] = join(words_of(first_high), words_of(second_high));
  parts[1] = join(words_of(first_middle), words_of(second_middle));
  parts[2] = join(words_of(first_low), words_of(second_low));
  check += first_low * 0.0F;
  check += second_low * 0.0F;
}

}  // namespace detail

inline bool has_nan(const Lanes16& v) {
  bool has = false;
  for (int i = 0; i < 16; ++i) has |= v[i] != v[i];
  return has;
}

}  // namespace graft

#endif
