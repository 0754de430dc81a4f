#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/conv/conv_patterns.h"

namespace graft {

/// A tap along the width, and the source that the first target of a run meets by it.
struct MetTap {
  std::int64_t tap;
  std::int64_t source;
};

/// Targets along the width that meet sources by the same taps, none in padding: every `step`-th
/// from the first on. From one to the next each tap's source moves on by ConvLines::source_step.
struct ConvRun {
  std::int64_t first;
  std::int64_t count;
  std::vector<MetTap> taps;
};

/// How the lines (along the width) of a convolution's targets meet lines of its sources. Targets
/// are what sums stand at (see ConvDirection).
struct ConvLines {
  /// Of a geometry that fits().
  ConvLines(const ConvGeometry& geometry, ConvDirection direction);
  /// Tables of what meets stay small.
  static bool fits(const ConvGeometry& geometry);

  /// The source line that a target line meets by tap `line_tap` of depth and height; -1 if none.
  std::int64_t source_line(std::int64_t target, std::int64_t line_tap) const {
    return source_lines[static_cast<std::size_t>(target * line_taps + line_tap)];
  }

  std::int64_t target_lines;  ///< of an image
  std::int64_t target_width;
  std::int64_t source_width;
  std::int64_t source_plane;  ///< positions of an image
  std::int64_t line_taps;     ///< of depth and height
  std::int64_t width_taps;    ///< tap = line_tap * width_taps + MetTap::tap
  std::int64_t step;
  std::int64_t source_step;
  std::vector<ConvRun> runs;
  std::vector<std::int64_t> source_lines{};  // [target line][line tap]
};

}  // namespace graft
