#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/ops/kernels/conv_geometry.h"

namespace graft {

/// Which positions a sum of a convolution or of its input gradient takes in, tap by tap. The sums
/// stand at targets: outputs of the convolution, or its inputs; what they take in, at sources.
enum class ConvDirection { forward, input_grad };

/// Offsets in elements of a target, and of the first source that it meets.
struct ConvPlace {
  std::int32_t source;
  std::int32_t target;
};

/// A tap, and how far its source lies behind the first, in elements. Taps of an input gradient
/// count from the last one: then both grow together.
struct TapShift {
  std::int64_t tap;
  std::int64_t shift;
  friend auto operator<=>(const TapShift&, const TapShift&) = default;
};

/// Targets that meet sources by the same taps, with the same shifts: none meets padding.
struct ConvPattern {
  std::vector<TapShift> taps;
  /// Image by image, of each as many.
  std::vector<ConvPlace> places;
};

/// The patterns of `images` images whose rows of channels lie position by position. Empty without
/// targets; targets that meet nothing have a pattern without taps.
std::vector<ConvPattern> find_patterns(const ConvGeometry& geometry, ConvDirection direction,
                                       std::int64_t images);

/// [tap][position of an output image]: the position of the input image that it meets; -1 for
/// padding.
std::vector<std::int32_t> positions_met(const ConvGeometry& geometry);

}  // namespace graft
