#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/ops/conv/conv_blocks.h"
#include "core/ops/conv/conv_patterns.h"
#include "core/ops/conv/conv_slice.h"

namespace graft {

/// Sums of a convolution of f32 by the processor's tiles of bf16, to which each number is the sum
/// of three (adr/0086). Sources are split once a slice and gathered for 32 targets at a time.
class ConvParts {
 public:
  virtual ~ConvParts() = default;

  /// What a thread needs, at an address of 64.
  virtual std::size_t scratch_bytes() const = 0;
  /// Splits a slice of the weight's block, and its channels of so many positions. False where a
  /// number is infinite, NaN or nearly so large: such sums are made of plain numbers.
  virtual bool split_weight(const Slice& slice, void* scratch) const = 0;
  virtual bool split_sources(const Slice& slice, const float* sources, std::int64_t positions,
                             void* scratch) const = 0;
  /// target[channel] = start[channel] + sum of source[c] weight[c][channel] over taps and c.
  virtual void add(std::span<const ConvPlace> places, std::span<const TapShift> taps,
                   const Slice& slice, float* targets, void* scratch) const = 0;
};

/// For groups of so many source positions; null where the processor has no such tiles, GRAFT_ISA
/// asks for a set of instructions, or channels fill no tiles.
std::shared_ptr<const ConvParts> make_conv_parts(const ConvBlocks& blocks, std::int64_t positions);

}  // namespace graft
