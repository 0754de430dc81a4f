#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/width.h"

namespace graft {

/// A copy between two strided views of one shape: Transpose, Slice, Expand, Tile, Concat and Split
/// differ only in strides. Steps are counted in elements; a source step of 0 repeats, a negative
/// one reverses. No two target elements may coincide.
class StridedCopy {
 public:
  StridedCopy(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& target_steps,
              const std::vector<std::int64_t>& source_steps);

  /// `target` and `source` point to the views' first elements and must not overlap. T: those of
  /// visit_width, and unsigned integers.
  template <class T>
  void run(T* target, const T* source) const;

 private:
  struct Axis {
    std::int64_t dim = 1;
    std::int64_t target = 0;
    std::int64_t source = 0;
  };
  static constexpr std::int64_t kBlock = 32;

  template <class T>
  void copy_run(T* target, const T* source, std::int64_t count) const;
  template <class T>
  void copy_block(T* target, const T* source, std::int64_t outer, std::int64_t first) const;
  template <class T>
  void transpose_block(T* target, const T* source, std::int64_t rows) const;

  std::vector<Axis> outer_;  // outermost first
  Axis middle_;
  Axis inner_;
  std::int64_t outer_count_ = 1;
  std::int64_t size_ = 1;
  bool crosses_ = false;
};

/// Sets `count` elements, over all threads.
template <class T>
void fill_elements(T* target, std::int64_t count, T value) {
  parallel_for(count, 16384, [&](std::int64_t first, std::int64_t last) {
    std::fill(target + first, target + last, value);
  });
}

/// Copies input 0 to output 0, from `source_offset` on.
Kernel strided_kernel(DType dtype, const StridedCopy& copy, std::int64_t source_offset = 0);

}  // namespace graft
