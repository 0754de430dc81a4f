#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/machine.h"
#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/workspace.h"

namespace graft {

/// Outputs of one image that lie behind one another: whole lines along the width.
struct ConvBlock {
  std::int64_t first_line;
  std::int64_t lines;
};

/// What the three kernels share: sizes, the walk over images, groups and blocks, and columns.
class ConvColumns {
 public:
  /// `most_outputs`: of a block, unless one line has more; 0: what the cache holds.
  ConvColumns(const ConvGeometry& g, WorkspaceLayout& layout, std::int64_t most_outputs = 0)
      : g_(g),
        block_lines_(lines_of_block(most_outputs)),
        pieces_(g.batch * g.groups,
                static_cast<double>(g.batch * g.groups) * static_cast<double>(g.outputs) *
                    static_cast<double>(g.output_plane()) * static_cast<double>(rows())) {
    size_ = checked_multiply(rows(), checked_multiply(block_lines_, width()));
    offset_ =
        layout.reserve<float>(checked_multiply(size_, std::max<std::int64_t>(1, pieces_.count)));
  }

  const ConvGeometry& geometry() const { return g_; }
  std::int64_t piece_count() const { return pieces_.count; }
  /// Channels times taps.
  std::int64_t rows() const { return g_.inputs * g_.taps(); }
  std::int64_t outputs_of(const ConvBlock& block) const { return block.lines * width(); }
  std::int64_t offset_of(const ConvBlock& block) const { return block.first_line * width(); }

  /// Calls body(piece, image times group, columns) for each group of each image.
  template <class Body>
  void for_each_image(const KernelArgs& args, Body&& body) const {
    if (pieces_.count == 0) return;
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      float* const columns = workspace_at<float>(args, offset_) + piece * size_;
      for (std::int64_t image = first; image < last; ++image) body(piece, image, columns);
    });
  }

  template <class Body>
  void for_each_block(Body&& body) const {
    for (std::int64_t line = 0; line < lines(); line += block_lines_) {
      body(ConvBlock{line, std::min(block_lines_, lines() - line)});
    }
  }

  /// Lays out what the block's outputs meet at `x`, zeros for padding.
  void fill(const float* x, const ConvBlock& block, float* columns) const {
    const std::int64_t stride = g_.axes[2].stride;
    for_each_line(block, [&](std::int64_t at, std::int64_t x_at, const Span& inside) {
      float* const to = columns + at;
      std::fill_n(to, inside.first, 0.0F);
      if (stride == 1) {
        std::copy_n(x + x_at, inside.count(), to + inside.first);
      } else {
        for (std::int64_t i = 0; i < inside.count(); ++i) {
          to[inside.first + i] = x[x_at + i * stride];
        }
      }
      std::fill_n(to + inside.last, width() - inside.last, 0.0F);
    });
  }

  /// The way back: adds columns to what they were laid out from.
  void add(const float* columns, const ConvBlock& block, float* x) const {
    const std::int64_t stride = g_.axes[2].stride;
    for_each_line(block, [&](std::int64_t at, std::int64_t x_at, const Span& inside) {
      const float* const from = columns + at + inside.first;
      if (stride == 1) {
        for (std::int64_t i = 0; i < inside.count(); ++i) x[x_at + i] += from[i];
      } else {
        for (std::int64_t i = 0; i < inside.count(); ++i) x[x_at + i * stride] += from[i];
      }
    });
  }

 private:
  std::int64_t width() const { return g_.axes[2].output; }
  std::int64_t lines() const { return g_.axes[0].output * g_.axes[1].output; }

  /// As many as stay in the second cache beside what multiplies them.
  std::int64_t lines_of_block(std::int64_t most_outputs) const {
    constexpr std::int64_t kMostFloats = kSecondCacheBytes / 2 / std::int64_t{sizeof(float)};
    const std::int64_t line = std::max<std::int64_t>(1, checked_multiply(rows(), width()));
    std::int64_t most = kMostFloats / line;
    if (most_outputs > 0) most = std::min(most, most_outputs / std::max<std::int64_t>(1, width()));
    return std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(1, lines()));
  }

  /// Calls body(place in columns, place in x, outputs inside) for each row of columns and each line
  /// of the block. The outputs outside of `inside` meet padding; x is where the first inside meets.
  template <class Body>
  void for_each_line(const ConvBlock& block, Body&& body) const {
    const auto& [depth, height, along] = g_.axes;
    std::int64_t at = 0;
    for (std::int64_t c = 0; c < g_.inputs; ++c) {
      for (std::int64_t tap = 0; tap < g_.taps(); ++tap) {
        const std::int64_t kw = tap % along.kernel;
        const std::int64_t kh = tap / along.kernel % height.kernel;
        const std::int64_t kd = tap / along.kernel / height.kernel;
        const Span met = along.outputs_of_tap(kw);
        for (std::int64_t line = block.first_line; line < block.first_line + block.lines; ++line) {
          const std::int64_t d = depth.position(line / height.output, kd);
          const std::int64_t h = height.position(line % height.output, kh);
          const bool is_inside =
              met.count() > 0 && d >= 0 && d < depth.input && h >= 0 && h < height.input;
          const std::int64_t x_line = (c * depth.input + d) * height.input + h;
          body(at, is_inside ? x_line * along.input + along.position(met.first, kw) : 0,
               is_inside ? met : Span{0, 0});
          at += width();
        }
      }
    }
  }

  ConvGeometry g_;
  std::int64_t block_lines_;
  Pieces pieces_;
  std::int64_t size_ = 0;  ///< of the columns of a piece
  std::size_t offset_ = 0;
};

}  // namespace graft
