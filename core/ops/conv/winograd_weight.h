#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/ops/conv/conv_blocks.h"
#include "core/ops/conv/winograd.h"

namespace graft {

/// The weight of a convolution by tiles of 2 x 2 targets, turned (winograd.h), in blocks of target
/// channels, whole registers of them: of a block [panel][slice][number][source][target]. Panels and
/// slices are those of ConvBlocks.
class WinogradWeight {
 public:
  /// Target channels of a block: all but the last.
  static constexpr std::int64_t kWidth = 64;
  static_assert(kWidth % ConvBlocks::kWidth == 0);

  WinogradWeight(const ConvGeometry& geometry, ConvDirection direction)
      : panels_(geometry, direction),
        targets_(direction == ConvDirection::forward ? geometry.outputs : geometry.inputs) {}

  const ConvBlocks& panels() const { return panels_; }
  std::int64_t blocks() const { return (targets_ + kWidth - 1) / kWidth; }
  std::int64_t most_width() const { return std::min(kWidth, targets_); }
  std::int64_t width_of(std::int64_t block) const {
    return std::min(kWidth, targets_ - block * kWidth);
  }
  /// Numbers in the first block; no other has more.
  std::int64_t block_size() const { return kTileNumbers * panels_.sources() * most_width(); }

  /// Calls body(panel, offset of its numbers in the block).
  template <class Body>
  void for_each_panel(std::int64_t block, Body&& body) const {
    for (std::int64_t first = 0; first < width_of(block); first += ConvBlocks::kWidth) {
      body(panels_[(block * kWidth + first) / ConvBlocks::kWidth],
           kTileNumbers * panels_.sources() * first);
    }
  }

  /// Turns a block of a weight that lies as ONNX has it. by_taps: room for panels().block_size()
  /// numbers.
  void turn(const float* weight, std::int64_t block, float* by_taps, float* to) const;
  /// All blocks of a weight that is known before the run, block_size() from one to the next. While
  /// somebody holds them, the next who asks gets the same.
  std::shared_ptr<const Tensor> turn_now(const float* weight) const;

 private:
  ConvBlocks panels_;
  std::int64_t targets_;
};

}  // namespace graft
