#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/base/shape.h"
#include "core/layers/layer.h"

namespace graft {

/// A convolution that keeps the size but for its stride, without bias: batch norm follows.
inline Layer conv_for_norm(const std::string& name, std::int64_t out, std::int64_t kernel,
                           std::int64_t stride, std::int64_t groups = 1) {
  return Conv{.name = name,
              .out = out,
              .kernel = {kernel},
              .stride = {stride},
              .padding = {kernel / 2},
              .groups = groups,
              .bias = false,
              .init = Init{.kind = Init::kaiming_normal, .fan_out = true}};
}

/// Throws Error{shape} naming the net unless `input` is [C,H,W].
void require_image(std::string_view net, const Shape& input);
/// The shape of the samples behind an input [N,...].
Shape sample_of(const Value& input);
/// Throws Error{shape} naming the net unless the image's sides are multiples of `step`.
void require_multiple(std::string_view net, const Shape& image, std::int64_t step);

/// Below 64 pixels, as CIFAR's are: too small to be halved five times. `input`: [C,H,W].
inline bool is_small_image(const Shape& input) {
  constexpr std::int64_t kSmall = 64;
  return std::all_of(input.begin() + std::min(1, input.rank()), input.end(),
                     [](std::int64_t pixels) { return pixels < kSmall; });
}

}  // namespace graft
