#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/kernels/conv_geometry.h"

namespace graft {

/// How the terms of a weight gradient tell the taps along a row of the kernel apart (ConvTerms).
enum class RowTaps {
  shifted,    ///< by their shifts: rows of the grid are longer than those of y
  apart,      ///< each has lists of its own
  as_columns  ///< columns are what a row of the kernel meets, inputs tap after tap
};

/// The terms of a weight gradient, dw[output][tap][input] = sum of dy x over positions, for an
/// image: positions of y in a grid so wide that what a tap meets by a term is what the first tap
/// meets some terms later, whatever the term. Where rows of y end terms stand for none of its
/// positions. They come in chunks of 32.
class ConvTerms {
 public:
  static constexpr std::int64_t kChunk = 32;

  struct Tap {
    std::int64_t index;
    std::int64_t shift;
  };
  /// What terms meet by some taps.
  struct List {
    /// The position of an image of x that a term meets without a shift; -1 in padding. Goes on for
    /// the largest shift behind the last term, and one more.
    std::vector<std::int32_t> places;
    std::vector<Tap> taps;  ///< with as_columns the first of each row of the kernel
  };

  /// Whether there are such terms, lists of them stay small, and most stand for a position of y.
  static bool suit(const ConvGeometry& geometry, RowTaps row_taps);
  /// Where they suit.
  ConvTerms(const ConvGeometry& geometry, RowTaps row_taps);

  std::int64_t chunks() const { return chunks_; }
  /// Of the last chunk.
  std::int64_t last_terms() const { return last_terms_; }
  /// The position of y that a term stands for; -1 for none.
  const std::vector<std::int32_t>& outputs() const { return outputs_; }
  const std::vector<List>& lists() const { return lists_; }
  /// In each list.
  std::int64_t places() const { return places_; }
  /// Positions in a row of what `places` count: of x, with as_columns of x with its padding.
  std::int64_t row_positions() const { return row_positions_; }

 private:
  std::int64_t chunks_ = 0;
  std::int64_t last_terms_ = 0;
  std::int64_t places_ = 0;
  std::int64_t row_positions_ = 0;
  std::vector<std::int32_t> outputs_;
  std::vector<List> lists_;
};

}  // namespace graft
