#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/parallel.h"
#include "core/ops/kernels/convert_floats.h"

namespace graft {

/// Sums of each column of a row-major matrix, f32 or stored in bf16. Rows are cut into parts by the
/// shape alone, and the parts are added in their order, so the bits do not depend on the threads.
/// Within a part, groups of 16 rows lie one after another, whatever the number of columns: they are
/// added up as long vectors, 1024 rows in f32, the rest in f64.
class ColumnSums {
 public:
  ColumnSums(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), parts_(std::clamp<std::int64_t>(rows / 256, 1, 64)) {}

  std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(parts_ * columns_) * (sizeof(double) + kGroup * sizeof(float));
  }

  template <class T>
  void run(const T* x, float* y, void* workspace) const {
    auto* const sums = static_cast<double*>(workspace);
    auto* const groups = reinterpret_cast<float*>(sums + parts_ * columns_);
    parallel_for(parts_, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part) {
        const std::int64_t begin = rows_ * part / parts_;
        const std::int64_t end = rows_ * (part + 1) / parts_;
        sum_part(x + begin * columns_, end - begin, groups + part * kGroup * columns_,
                 sums + part * columns_);
      }
    });
    for (std::int64_t j = 0; j < columns_; ++j) {
      double total = 0.0;
      for (std::int64_t part = 0; part < parts_; ++part) total += sums[part * columns_ + j];
      y[j] = static_cast<float>(total);
    }
  }

 private:
  static constexpr std::int64_t kGroup = 16;

  template <class T>
  void sum_part(const T* x, std::int64_t rows, float* group, double* sums) const {
    constexpr std::int64_t kMostInFloat = 1024;
    std::fill_n(sums, columns_, 0.0);
    for (std::int64_t row = 0; row < rows; row += kMostInFloat) {
      const std::int64_t count = std::min(kMostInFloat, rows - row);
      const std::int64_t width = std::min(count, kGroup) * columns_;
      const std::int64_t size = count * columns_;
      const T* const from = x + row * columns_;
      convert_floats(from, width, group);
      std::int64_t at = width;
      for (; at + kAtOnce * width <= size; at += kAtOnce * width) {
        add<kAtOnce>(from + at, width, width, group);
      }
      for (; at < size; at += width) add<1>(from + at, width, std::min(width, size - at), group);
      for (std::int64_t i = 0; i < width; i += columns_) {
        for (std::int64_t j = 0; j < columns_; ++j) sums[j] += static_cast<double>(group[i + j]);
      }
    }
  }

  /// Groups that are added in one go, so that sums of wide rows, which fill a first cache, come and
  /// go less often.
  static constexpr int kAtOnce = 4;

  /// group[i] += the numbers of `groups` groups that are `width` apart, one after the other.
  template <int groups, class T>
  static void add(const T* from, std::int64_t width, std::int64_t count, float* group) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      float sum = group[i];
      for (int g = 0; g < groups; ++g) sum += static_cast<float>(from[g * width + i]);
      group[i] = sum;
    }
  }

  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t parts_;
};

}  // namespace graft
