#pragma once

#include <cstdint>
#include <optional>

#include "core/ops/infer.h"

namespace graft {

/// A call of DFT whose lengths are known.
struct DftCall {
  int axis = 0;
  std::int64_t input = 0;   ///< elements along the axis
  std::int64_t length = 1;  ///< of the transform; the input is cut off or filled up with zeros
  std::int64_t output = 1;  ///< elements of the result along the axis
  bool inverse = false;
  bool onesided = false;

  /// The inverse of a one-sided transform: its result is real.
  bool is_real() const { return inverse && onesided; }
};

/// nullopt where dft_length, axis or the shape are not known before the run.
/// Throws Error{shape} where they do not fit.
std::optional<DftCall> dft_call(const InferContext& context);

}  // namespace graft
