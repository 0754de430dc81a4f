#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/at.h"
#include "core/base/parallel.h"
#include "core/ops/conv/conv_terms.h"
#include "core/ops/kernels/bf16_panels.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {

/// Columns of a convolution's dy as rows of 32 terms, with zeros for terms that are none:
/// [outputs / side][images][chunks][side][32].
class TermsOfDy {
 public:
  TermsOfDy(const ConvGeometry& geometry, const ConvTerms& terms)
      : g_(geometry),
        chunks_(terms.chunks()),
        side_(g_.outputs > kBf16Inner ? kBf16Inner : kBf16Side),
        outputs_((g_.outputs + side_ - 1) / side_ * side_) {}

  /// Outputs that lie side by side.
  std::int64_t side() const { return side_; }
  /// With those that fill the last side.
  std::int64_t outputs() const { return outputs_; }
  std::int64_t size() const {
    return checked_multiply(checked_multiply(g_.batch, chunks_ * kBf16Inner), outputs_);
  }
  std::int64_t chunk_size() const { return side_ * kBf16Inner; }
  std::int64_t image_size() const { return chunks_ * chunk_size(); }

  /// Where a side's chunk begins.
  std::int64_t offset(std::int64_t output, std::int64_t image, std::int64_t chunk) const {
    return (output / side_ * g_.batch + image) * image_size() + chunk * chunk_size();
  }

  void pack(const BFloat16* dy, const ConvTerms& terms, BFloat16* to) const {
    parallel_for(g_.batch * chunks_, 4, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t image = i / chunks_;
        const std::int64_t chunk = i % chunks_;
        const BFloat16* rows[kBf16Inner];
        for (std::int64_t term = 0; term < kBf16Inner; ++term) {
          const std::int32_t place = at(terms.outputs(), chunk * kBf16Inner + term);
          rows[term] = place < 0 ? nullptr : dy + (image * g_.output_plane() + place) * g_.outputs;
        }
        for (std::int64_t output = 0; output < outputs_; output += side_) {
          pack_columns(rows, output, std::min(output + side_, g_.outputs),
                       to + offset(output, image, chunk));
        }
      }
    });
  }

 private:
  ConvGeometry g_;
  std::int64_t chunks_;
  std::int64_t side_;
  std::int64_t outputs_;
};

/// Images of a convolution's x whose rows have their padding (RowTaps::as_columns).
class PaddedImages {
 public:
  /// What is read behind an image belongs to it: so many numbers.
  PaddedImages(const ConvGeometry& geometry, const ConvTerms& terms, std::int64_t behind)
      : g_(geometry), positions_(terms.row_positions()), behind_(behind) {}

  std::int64_t size() const { return checked_multiply(lines() * positions_, g_.inputs) + behind_; }
  void fill(const BFloat16* x, BFloat16* to) const {
    const std::int64_t row = g_.axes[2].input * g_.inputs;
    const std::int64_t before = g_.axes[2].pad_begin * g_.inputs;
    const std::int64_t after = positions_ * g_.inputs - row - before;
    for (std::int64_t line = 0; line < lines(); ++line, x += row) {
      to = std::fill_n(to, before, BFloat16());
      to = std::copy_n(x, row, to);
      to = std::fill_n(to, after, BFloat16());
    }
    std::fill_n(to, behind_, BFloat16());
  }

 private:
  std::int64_t lines() const { return g_.axes[0].input * g_.axes[1].input; }

  ConvGeometry g_;
  std::int64_t positions_;
  std::int64_t behind_;
};

}  // namespace graft

#endif
