#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tools/graft/run_record.h"

namespace graft::cli {

struct TextChartOptions {
  std::size_t columns = 80;
  std::size_t rows = 12;
  /// Dots of Braille, eight a character; otherwise a letter a curve: a, b, ...
  bool braille = true;
};

/// Curves over one another between two axes, the largest and smallest value at the left, epochs
/// below; then a line that names the curves. Empty if no curve has a point.
std::string text_chart(std::span<const Curve> curves, const TextChartOptions& options);

}  // namespace graft::cli
