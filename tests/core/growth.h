#pragma once

#include <algorithm>
#include <ctime>

namespace graft::testing {

/// How many times as long `work()` takes on ten times as much, both made by `make(size)` before: 10
/// where time is proportional to size, 100 where it is to the square. By processor time, of which
/// other programs take nothing, and the least of three.
template <class Make>
double growth(int size, const Make& make) {
  const auto seconds = [&](int of) {
    double least = 0;
    for (int i = 0; i < 3; ++i) {
      auto work = make(of);
      const std::clock_t start = std::clock();
      work();
      const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      least = i == 0 ? taken : std::min(least, taken);
    }
    return least;
  };
  const double small = seconds(size);
  return seconds(10 * size) / std::max(small, 1e-6);
}

/// More than a proportional growth can seem, since caches hold the small one alone.
inline constexpr double kFarFromProportional = 45;

}  // namespace graft::testing
