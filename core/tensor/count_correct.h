#pragma once

#include <cstdint>

namespace graft {

/// How many of the class indices `target` [outer, inner], `rows` in all, name the first largest
/// score of [outer, classes, inner]; a NaN is larger than all, as for ArgMax. Targets that are
/// `ignored` count for nothing; below 0 no class is.
template <class T>
std::int64_t count_correct(const T* scores, const std::int64_t* target, std::int64_t rows,
                           std::int64_t classes, std::int64_t inner, std::int64_t ignored) {
  std::int64_t correct = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const x = scores + row / inner * classes * inner + row % inner;
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < classes; ++i) {
      const T largest = x[best * inner];
      const T here = x[i * inner];
      if (largest == largest && (here > largest || here != here)) best = i;
    }
    correct += best == target[row] && best != ignored ? 1 : 0;
  }
  return correct;
}

}  // namespace graft
