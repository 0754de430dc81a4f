#pragma once

#include <cstdint>
#include <span>

#include "core/ops/kernels/convert_floats.h"
#include "core/ops/kernels/transpose.h"

namespace graft {

/// Writes sums of a weight gradient to its rows: `to` is [input][tap], and sums of a tap follow
/// those of the tap before by `step`. order: which tap is which, all of them.
template <class T>
void write_taps(const float* sums, std::int64_t step, std::span<const std::int64_t> order,
                std::int64_t inputs, T* to) {
  constexpr std::int64_t kLanes = 16;
  constexpr std::int64_t kFewest = 4;  // of which turning them takes less time
  const std::int64_t taps = std::ssize(order);
  if (taps == 1) return convert_floats(sums, inputs, to);
  const bool turns = taps >= kFewest && taps <= kLanes;
  std::int64_t input = 0;
  for (; turns && input + kLanes <= inputs; input += kLanes) {
    Lanes16 columns[kLanes] = {};
    for (std::int64_t i = 0; i < taps; ++i) {
      columns[order[i]] = load<16>(sums + i * step + input);
    }
    transpose(columns);
    T rows[kLanes * kLanes];
    for (std::int64_t i = 0; i < kLanes; ++i) store(rows + i * taps, columns[i]);
    std::copy_n(rows, kLanes * taps, to + input * taps);
  }
  for (std::int64_t i = 0; i < taps; ++i) {
    for (std::int64_t j = input; j < inputs; ++j) {
      to[j * taps + order[i]] = static_cast<T>(sums[i * step + j]);
    }
  }
}

}  // namespace graft
