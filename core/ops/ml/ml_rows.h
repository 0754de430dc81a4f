#pragma once

#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/ml/ml_scores.h"

namespace graft {

/// Runs row(sample, scores) for each sample and finish(args, index, scores) on what it gives.
/// `width` scores a sample lie in the workspace.
template <class T, class Row, class Finish>
Kernel row_kernel(KernelRequest& request, std::int64_t width, const Row& row,
                  const Finish& finish) {
  const Samples2d samples = samples_of(request.shape());
  request.need_workspace(bytes_of(DType::f64, checked_multiply(samples.count, width)));
  return [samples, width, row, finish](const KernelArgs& args) {
    auto* const scores = static_cast<double*>(args.workspace);
    constexpr std::int64_t kGrain = 16;
    parallel_for(samples.count, kGrain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        row(args.input<T>(0) + i * samples.features, scores + i * width);
        finish(args, i, scores + i * width);
      }
    });
  };
}

template <class T>
double dot(const T* x, const float* w, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * w[i];
  return sum;
}

/// Writes label and scores [count] of sample `i`, where the classifier's outputs are wanted.
inline void write_result(const KernelArgs& args, std::int64_t i, std::int64_t label,
                         const double* scores, std::int64_t count) {
  if (auto* const out = args.output<std::int64_t>(0)) out[i] = label;
  float* const row = args.output<float>(1);
  for (std::int64_t c = 0; row != nullptr && c < count; ++c) {
    row[i * count + c] = static_cast<float>(scores[c]);
  }
}

}  // namespace graft
