#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/conv/conv_patterns.h"
#include "core/ops/conv/winograd.h"
#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/kernels/register_tile.h"

namespace graft {

/// Some channels of images: whole registers of them.
struct ImageChannels {
  const float* images;
  std::int64_t all;  ///< that the images have
  std::int64_t first;
  std::int64_t count;
};

/// Of a step from one of 16 numbers to the next: numbers a power of two apart share sets of a
/// cache.
inline constexpr std::int64_t kOffPower = 16;

/// Where the 16 numbers of a channel go, `step` apart.
struct TurnedNumbers {
  float* numbers;
  std::int64_t step;
};

/// The tiles of a convolution by 3 x 3 taps with a stride of 1, or of its input gradient, image by
/// image (winograd.h). Images are rows of f32 channels.
class WinogradTiles {
 public:
  struct Tile {
    std::int64_t image;
    std::int64_t row;  ///< in tiles
    std::int64_t column;
  };

  WinogradTiles(const ConvGeometry& g, ConvDirection direction)
      : rows_(axis_of(g.axes[1], direction)),
        columns_(axis_of(g.axes[2], direction)),
        count_(g.batch * rows_.tiles() * columns_.tiles()) {}

  /// Three by three taps side by side, channels that fill registers and are enough to pay for being
  /// turned, and fewer products than of taps one by one, of which none meet padding.
  static bool suit(const ConvGeometry& g, ConvDirection direction) {
    constexpr std::int64_t kFewestChannels = 32;
    constexpr double kWeightTiles = 24;  // of which the products take as long as turning a weight
    constexpr double kMostShare = 0.85;
    const auto fits = [](const WindowAxis& axis) {
      return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
    };
    const auto fill = [](std::int64_t channels) {
      return channels >= kFewestChannels && channels % kTileLanes == 0;
    };
    if (g.groups != 1 || g.rank != 2 || !fits(g.axes[1]) || !fits(g.axes[2]) || !fill(g.inputs) ||
        !fill(g.outputs) || g.input_plane() == 0) {
      return false;
    }
    const WinogradTiles tiles(g, direction);
    const double met =
        static_cast<double>(g.batch) * tiles.rows_.met_taps() * tiles.columns_.met_taps();
    const double products = kTileNumbers * (static_cast<double>(tiles.count()) + kWeightTiles);
    return products <= kMostShare * met;
  }

  std::int64_t count() const { return count_; }
  Tile operator[](std::int64_t index) const {
    const std::int64_t row = index / columns_.tiles();
    return {row / rows_.tiles(), row % rows_.tiles(), index % columns_.tiles()};
  }

  /// Turns what a tile's taps meet; what is none is zero. edge: room for 16 rows of channels.
  void turn_sources(const ImageChannels& sources, const Tile& tile, float* edge,
                    const TurnedNumbers& to) const {
    const Square square{kTileSources, rows_.first_source(tile.row),
                        columns_.first_source(tile.column)};
    turn(sources, {rows_.sources, columns_.sources}, tile.image, square, edge,
         [&](const float* from, std::int64_t row, std::int64_t column, std::int64_t channel) {
           graft::turn_sources<kRegisterLanes>(from, row, column, to.numbers + channel, to.step);
         });
  }
  /// The same of its targets.
  void turn_targets(const ImageChannels& targets, const Tile& tile, float* edge,
                    const TurnedNumbers& to) const {
    const Square square{kTileTargets, tile.row * kTileTargets, tile.column * kTileTargets};
    turn(targets, {rows_.targets, columns_.targets}, tile.image, square, edge,
         [&](const float* from, std::int64_t row, std::int64_t column, std::int64_t channel) {
           graft::turn_targets<kRegisterLanes>(from, row, column, to.numbers + channel, to.step);
         });
  }

  /// Calls body(row, column, position) for the targets of a tile that are there: row and column in
  /// the tile, the position in all images.
  template <class Body>
  void for_each_target(const Tile& tile, Body&& body) const {
    const std::int64_t row = tile.row * kTileTargets;
    const std::int64_t column = tile.column * kTileTargets;
    for (std::int64_t r = 0; r < std::min(kTileTargets, rows_.targets - row); ++r) {
      const std::int64_t line = (tile.image * rows_.targets + row + r) * columns_.targets;
      for (std::int64_t c = 0; c < std::min(kTileTargets, columns_.targets - column); ++c) {
        body(r, c, line + column + c);
      }
    }
  }

  /// Calls body(tap, position) for the taps by which that target of a tile meets a source.
  template <class Body>
  void for_each_meeting(const Tile& tile, std::int64_t row, std::int64_t column,
                        Body&& body) const {
    for (std::int64_t tap = 0; tap < kTileTaps; ++tap) {
      const std::int64_t r = rows_.first_source(tile.row) + row + tap / 3;
      const std::int64_t c = columns_.first_source(tile.column) + column + tap % 3;
      if (r < 0 || r >= rows_.sources || c < 0 || c >= columns_.sources) continue;
      body(tap, (tile.image * rows_.sources + r) * columns_.sources + c);
    }
  }

 private:
  /// Rows or columns of an image.
  struct Axis {
    std::int64_t sources;
    std::int64_t targets;
    std::int64_t pad;

    std::int64_t tiles() const { return (targets + kTileTargets - 1) / kTileTargets; }
    std::int64_t first_source(std::int64_t tile) const { return tile * kTileTargets - pad; }
    /// By all targets together.
    double met_taps() const {
      std::int64_t met = 0;
      for (std::int64_t before = pad - 2; before <= pad; ++before) {  // of a target's first source
        met += std::max<std::int64_t>(
            0, std::min(targets, sources + before) - std::max<std::int64_t>(0, before));
      }
      return static_cast<double>(met);
    }
  };
  struct Plane {
    std::int64_t rows;
    std::int64_t columns;
  };
  struct Square {
    std::int64_t side;
    std::int64_t row;  ///< the first: below 0 in the padding
    std::int64_t column;
  };

  static Axis axis_of(const WindowAxis& axis, ConvDirection direction) {
    if (direction == ConvDirection::forward) return {axis.input, axis.output, axis.pad_begin};
    return {axis.output, axis.input, axis.kernel - 1 - axis.pad_begin};
  }

  /// Calls body(numbers, row step, column step, channel) for the registers of channels.
  template <class Body>
  static void turn(const ImageChannels& channels, const Plane& plane, std::int64_t image,
                   const Square& square, float* edge, Body&& body) {
    const bool is_inner = square.row >= 0 && square.row + square.side <= plane.rows &&
                          square.column >= 0 && square.column + square.side <= plane.columns;
    const float* from = edge;
    std::int64_t column_step = channels.count;
    std::int64_t row_step = square.side * channels.count;
    if (is_inner) {
      from = at(channels, plane, image, square.row, square.column);
      column_step = channels.all;
      row_step = plane.columns * channels.all;
    } else {
      copy(channels, plane, image, square, edge);
    }
    for (std::int64_t i = 0; i < channels.count; i += kRegisterLanes) {
      body(from + i, row_step, column_step, i);
    }
  }

  static const float* at(const ImageChannels& channels, const Plane& plane, std::int64_t image,
                         std::int64_t row, std::int64_t column) {
    const std::int64_t position = (image * plane.rows + row) * plane.columns + column;
    return channels.images + position * channels.all + channels.first;
  }

  static void copy(const ImageChannels& channels, const Plane& plane, std::int64_t image,
                   const Square& square, float* to) {
    for (std::int64_t r = square.row; r < square.row + square.side; ++r) {
      for (std::int64_t c = square.column; c < square.column + square.side; ++c) {
        const bool is_there = r >= 0 && r < plane.rows && c >= 0 && c < plane.columns;
        to = is_there ? std::copy_n(at(channels, plane, image, r, c), channels.count, to)
                      : std::fill_n(to, channels.count, 0.0F);
      }
    }
  }

  Axis rows_;
  Axis columns_;
  std::int64_t count_;
};

}  // namespace graft
