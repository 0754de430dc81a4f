#pragma once

#include <cstdint>

#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/workspace.h"

namespace graft {

/// Undefined when left out.
inline TensorSpec input_or_none(const KernelRequest& request, int index) {
  return index < request.input_count() ? request.input(index) : TensorSpec{};
}

/// An f32 operand of a kernel that works in one layout: in the other it goes through a copy.
class ConvImage {
 public:
  ConvImage(const TensorSpec& spec, Layout wanted, WorkspaceLayout& layout)
      : is_row_major_(spec.layout == Layout::row_major) {
    if (spec.dtype == DType::undefined || spec.layout == wanted) return;
    if (is_layout_neutral(spec.shape) || spec.shape.size() == 0) return;
    is_copied_ = true;
    images_ = spec.shape[0];
    channels_ = spec.shape[1];
    plane_ = spec.shape.size() / (images_ * channels_);
    copy_ = layout.reserve<float>(spec.shape.size());
  }

  /// Null where the operand is left out.
  const float* read(const KernelArgs& args, const float* from) const {
    if (!is_copied_ || from == nullptr) return from;
    auto* const to = workspace_at<float>(args, copy_);
    for_each_element([&](std::int64_t row_major, std::int64_t channels_last) {
      is_row_major_ ? to[channels_last] = from[row_major] : to[row_major] = from[channels_last];
    });
    return to;
  }

  /// Where to write what `finish` then brings to its place.
  float* start(const KernelArgs& args, float* to) const {
    return is_copied_ ? workspace_at<float>(args, copy_) : to;
  }
  void finish(const KernelArgs& args, float* to) const {
    if (!is_copied_) return;
    const auto* const from = workspace_at<float>(args, copy_);
    for_each_element([&](std::int64_t row_major, std::int64_t channels_last) {
      is_row_major_ ? to[row_major] = from[channels_last] : to[channels_last] = from[row_major];
    });
  }

 private:
  template <class Body>
  void for_each_element(Body&& body) const {
    parallel_for(images_, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t n = first; n < last; ++n) {
        const std::int64_t start = n * channels_ * plane_;
        for (std::int64_t c = 0; c < channels_; ++c) {
          for (std::int64_t i = 0; i < plane_; ++i) {
            body(start + c * plane_ + i, start + i * channels_ + c);
          }
        }
      }
    });
  }

  bool is_row_major_;
  bool is_copied_ = false;
  std::int64_t images_ = 0;
  std::int64_t channels_ = 0;
  std::int64_t plane_ = 0;
  std::size_t copy_ = 0;
};

}  // namespace graft
