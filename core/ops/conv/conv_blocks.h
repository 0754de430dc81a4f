#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/ops/conv/conv_patterns.h"
#include "core/ops/kernels/register_tile.h"
#include "core/tensor/tensor.h"

namespace graft {

/// Some target channels of a convolution by tiles.
struct TargetBlock {
  std::int64_t first;
  std::int64_t width;

  std::int64_t vectors() const { return (width + kTileLanes - 1) / kTileLanes; }
  /// Of its part of the weight, whose last vector is filled up with zeros.
  std::int64_t row() const { return vectors() * kTileLanes; }
};

/// The weight of a convolution by tiles, cut by target channels into blocks and those by source
/// channels into slices: of a block [slice][tap][source][target], with taps counted as in patterns.
class ConvBlocks {
 public:
  /// Target channels of a block: all but the last.
  static constexpr std::int64_t kWidth = kMostTileVectors * kTileLanes;

  ConvBlocks(const ConvGeometry& geometry, ConvDirection direction);

  std::int64_t sources() const { return sources_; }
  std::int64_t taps() const { return taps_; }
  bool has_one_slice() const { return slice_ >= sources_; }
  /// Of a slice: all but the last.
  std::int64_t slice_channels() const { return std::min(slice_, sources_); }
  std::int64_t count() const { return (targets_ + kWidth - 1) / kWidth; }
  TargetBlock operator[](std::int64_t index) const {
    return {index * kWidth, std::min(kWidth, targets_ - index * kWidth)};
  }
  /// Numbers in the first block; no other has more.
  std::int64_t block_size() const { return sources_ * taps_ * (*this)[0].row(); }
  /// From the first number of a block to those of the slice that begins with that source.
  std::int64_t slice_offset(const TargetBlock& block, std::int64_t source) const {
    return source * taps_ * block.row();
  }

  /// Calls body(first, count) for the slices of source channels.
  template <class Body>
  void for_each_slice(Body&& body) const {
    for (std::int64_t first = 0; first < sources_; first += slice_) {
      body(first, std::min(slice_, sources_ - first));
    }
  }

  /// `weight`: all of it, as ONNX has it. `to`: block_size() numbers.
  void pack(const float* weight, const TargetBlock& block, float* to) const;
  /// All blocks of a weight that is known before the run, block_size() from one to the next. While
  /// somebody holds them, the next who asks gets the same.
  std::shared_ptr<const Tensor> pack_now(const float* weight) const;

 private:
  bool is_forward_;
  std::int64_t sources_;  ///< channels
  std::int64_t targets_;
  std::int64_t taps_;
  std::int64_t slice_;  ///< channels
};

}  // namespace graft
