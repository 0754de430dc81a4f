#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/rng.h"
#include "core/base/shape.h"

namespace graft {

/// One sample's float image in place: `pixels` is [channels, height, width], row-major.
struct ImageView {
  std::span<float> pixels;
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Sees `shape` [C,H,W] as it is, [F] as F channels of one pixel. Throws Error{shape} for others.
ImageView image_view(std::span<float> pixels, const Shape& shape);

/// The random numbers of one sample in one epoch. They depend on nothing else, so a transform
/// gives the same result on any thread and in any order of the samples.
class SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::uint64_t stream) : random_(seed, stream) {}
  /// The next integer in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) { return random_.below(next_++, bound); }
  /// The next value in [0, 1).
  double uniform() { return random_.uniform_double(next_++); }

 private:
  Philox random_;
  std::uint64_t next_ = 0;
};

/// Changes an image in place; any function of this form serves. It is called on the loader's
/// thread and must not keep state between samples.
using Transform = std::function<void(const ImageView& image, SampleRandom& random)>;

/// (pixel - mean) / deviation, with one number a channel or one for all.
/// Throws Error{argument} if the lengths do not fit, a deviation is not above 0 or a number is not
/// finite.
struct Normalize {
  std::vector<float> mean;
  std::vector<float> deviation;
  void operator()(const ImageView& image, SampleRandom& random) const;
};

/// A random crop of the image's own size out of the image with `padding` zero pixels on each side.
/// Throws Error{argument} unless 0 <= padding < height and width.
struct RandomCrop {
  std::int64_t padding = 4;
  void operator()(const ImageView& image, SampleRandom& random) const;
};

/// Swaps left and right in an image with that probability. Throws Error{argument} unless it is in
/// [0, 1].
struct RandomHorizontalFlip {
  double probability = 0.5;
  void operator()(const ImageView& image, SampleRandom& random) const;
};

}  // namespace graft
