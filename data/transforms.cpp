#include "data/transforms.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"

namespace graft {
namespace {

/// target[x] = row[x + dx] where that lies inside the row, else 0; both may be the same memory.
void shift_row(float* target, const float* row, std::int64_t width, std::int64_t dx) {
  const std::int64_t kept = width - std::abs(dx);
  const std::int64_t from = std::max<std::int64_t>(dx, 0);
  const std::int64_t to = std::max<std::int64_t>(-dx, 0);
  std::memmove(target + to, row + from, static_cast<std::size_t>(kept) * sizeof(float));
  std::fill_n(target + (dx > 0 ? kept : 0), std::abs(dx), 0.0F);
}

}  // namespace

ImageView image_view(std::span<float> pixels, const Shape& shape) {
  if (shape.rank() == 3) return {pixels, shape[0], shape[1], shape[2]};
  if (shape.rank() == 1) return {pixels, shape[0], 1, 1};
  fail(ErrorKind::shape, "transforms: a sample is ", shape, ", wanted [C,H,W] or [F]");
}

void Normalize::operator()(const ImageView& image, SampleRandom& /*random*/) const {
  const std::size_t count = mean.size();
  const auto channels = static_cast<std::size_t>(image.channels);
  if (deviation.size() != count || (count != 1 && count != channels)) {
    fail(ErrorKind::argument, "normalize: ", count, " means and ", deviation.size(),
         " deviations for ", channels, " channels, wanted one for each or one for all");
  }
  const std::size_t area = image.pixels.size() / std::max<std::size_t>(channels, 1);
  for (std::size_t c = 0; c < channels; ++c) {
    const float shift = mean[count == 1 ? 0 : c];
    const float scale = deviation[count == 1 ? 0 : c];
    if (!(scale > 0.0F && std::isfinite(scale))) {
      fail(ErrorKind::argument, "normalize: deviation ", scale, ", wanted a number above 0");
    }
    if (!std::isfinite(shift)) {
      fail(ErrorKind::argument, "normalize: mean ", shift, ", wanted a finite number");
    }
    for (float& pixel : image.pixels.subspan(c * area, area)) pixel = (pixel - shift) / scale;
  }
}

void RandomCrop::operator()(const ImageView& image, SampleRandom& random) const {
  if (padding < 0 || padding >= std::min(image.height, image.width)) {
    fail(ErrorKind::argument, "random crop: padding ", padding, " for an image of ", image.height,
         " x ", image.width, ", wanted 0 to ", std::min(image.height, image.width) - 1);
  }
  const auto offset = [&] {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * padding + 1))) -
           padding;
  };
  const std::int64_t dy = offset();
  const std::int64_t dx = offset();
  for (std::int64_t c = 0; c < image.channels; ++c) {
    float* const plane = image.pixels.data() + c * image.height * image.width;
    for (std::int64_t i = 0; i < image.height; ++i) {
      // In place: walk so that a row is read before it is overwritten.
      const std::int64_t y = dy >= 0 ? i : image.height - 1 - i;
      float* const target = plane + y * image.width;
      if (y + dy < 0 || y + dy >= image.height) {
        std::fill_n(target, image.width, 0.0F);
      } else {
        shift_row(target, target + dy * image.width, image.width, dx);
      }
    }
  }
}

void RandomHorizontalFlip::operator()(const ImageView& image, SampleRandom& random) const {
  if (!(probability >= 0 && probability <= 1)) {
    fail(ErrorKind::argument, "random flip: probability ", probability, ", wanted 0 to 1");
  }
  if (random.uniform() >= probability) return;
  for (std::int64_t row = 0; row < image.channels * image.height; ++row) {
    float* const first = image.pixels.data() + row * image.width;
    std::reverse(first, first + image.width);
  }
}

}  // namespace graft
