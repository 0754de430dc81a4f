#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/limits.h"

namespace graft {
namespace {

/// Where a pixel of the result lies: between two of the source, and how far from the first.
struct Place {
  std::int64_t first;
  std::int64_t second;
  float share;  ///< of the second
};

std::vector<Place> places(std::int64_t from, std::int64_t to) {
  std::vector<Place> all;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t i = 0; i < to; ++i) {
    const double at = std::max(0.0, (static_cast<double>(i) + 0.5) * scale - 0.5);
    const auto first = std::min(static_cast<std::int64_t>(at), from - 1);
    const std::int64_t second = std::min(first + 1, from - 1);
    all.push_back({first, second, static_cast<float>(at - static_cast<double>(first))});
  }
  return all;
}

float between(float a, float b, float share) {
  return a * (1.0F - share) + b * share;
}

class Resized final : public Dataset {
 public:
  Resized(DatasetInfo info, std::shared_ptr<const Dataset> source)
      : Dataset(std::move(info)),
        source_(std::move(source)),
        rows_(places(from()[1], to()[1])),
        columns_(places(from()[2], to()[2])) {}

  void read(std::int64_t index, const SampleRow& row) const override {
    const Batch sample = make_batch(source_->info(), 1);
    const SampleRow given(sample, 0);
    source_->read(index, given);
    resize(given.input<float>(), row.input<float>());
    for (std::size_t i = 1; i < sample.inputs.size(); ++i) {
      visit_dtype(AllTypes{}, sample.inputs[i].dtype(), [&]<class T>() {
        std::ranges::copy(given.input<T>(i), row.input<T>(i).begin());
      });
    }
    visit_dtype(AllTypes{}, sample.target.dtype(),
                [&]<class T>() { std::ranges::copy(given.target<T>(), row.target<T>().begin()); });
    for (std::size_t i = 0; i < sample.further_targets.size(); ++i) {
      visit_dtype(AllTypes{}, sample.further_targets[i].dtype(), [&]<class T>() {
        std::ranges::copy(given.further_target<T>(i), row.further_target<T>(i).begin());
      });
    }
  }

 private:
  const Shape& from() const { return source_->info().inputs[0].shape; }
  const Shape& to() const { return info().inputs[0].shape; }

  void resize(std::span<const float> from_pixels, std::span<float> pixels) const {
    const std::int64_t width = from()[2];
    auto result = pixels.begin();
    for (std::int64_t c = 0; c < to()[0]; ++c) {
      const float* const plane = from_pixels.data() + c * from()[1] * width;
      for (const Place& y : rows_) {
        const float* const above = plane + y.first * width;
        const float* const below = plane + y.second * width;
        for (const Place& x : columns_) {
          *result++ = between(between(above[x.first], above[x.second], x.share),
                              between(below[x.first], below[x.second], x.share), y.share);
        }
      }
    }
  }

  std::shared_ptr<const Dataset> source_;
  std::vector<Place> rows_;
  std::vector<Place> columns_;
};

}  // namespace

std::shared_ptr<Dataset> resized(std::shared_ptr<const Dataset> dataset, std::int64_t height,
                                 std::int64_t width) {
  if (dataset == nullptr) fail(ErrorKind::argument, "resized: no data set is given");
  if (height < 1 || width < 1) {
    fail(ErrorKind::argument, "resized: to ", height, " x ", width, " pixels, wanted at least 1");
  }
  const std::int64_t most = limits().table_entries;
  if (height > most || width > most) {
    fail(ErrorKind::unsupported, "resized: to ", height, " x ", width,
         " pixels needs a table of as many entries; ", limit_text("tables", most));
  }
  DatasetInfo info = dataset->info();
  SampleField& image = info.inputs.at(0);
  if (image.dtype != DType::f32) {
    fail(ErrorKind::type, "resized: input '", image.name, "' is ", image.dtype, ", wanted f32");
  }
  if (image.shape.rank() != 3 || image.shape[1] < 1 || image.shape[2] < 1) {
    fail(ErrorKind::shape, "resized: input '", image.name, "' has shape ", image.shape,
         ", wanted an image [C,H,W] with pixels");
  }
  image.shape = Shape{image.shape[0], height, width};
  return std::make_shared<Resized>(std::move(info), std::move(dataset));
}

}  // namespace graft
