// RoiAlign and MaxRoiPool differ in which elements a bin of a region reads, and with which weights:
// `AlignBins` and `PoolBins`. What is done with them is common: `pool_regions`, `add_gradients`.
#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/kernels/index.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

struct RoiGeometry {
  RoiGeometry(const KernelRequest& request, std::int64_t output_height, std::int64_t output_width)
      : batch(request.shape()[0]),
        channels(request.shape()[1]),
        height(request.shape()[2]),
        width(request.shape()[3]),
        regions(request.shape(1)[0]),
        rows(output_height),
        columns(output_width),
        scale(static_cast<double>(request.attributes().get_float("spatial_scale", 1.0F))) {}

  std::int64_t batch;
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
  std::int64_t regions;
  std::int64_t rows;  ///< bins of a region
  std::int64_t columns;
  double scale;

  std::int64_t plane() const { return height * width; }
  std::int64_t bins() const { return rows * columns; }
};

/// RoiAlign: a grid of samples in each bin, each made of four elements.
template <class T, class Index>
class AlignBins {
 public:
  AlignBins(const KernelRequest& request, const RoiGeometry& geometry)
      : g_(geometry),
        takes_max_(request.attributes().get_string("mode", "avg") == "max"),
        shifts_(request.attributes().get_string("coordinate_transformation_mode", "half_pixel") ==
                "half_pixel"),
        samples_(request.attributes().get_int("sampling_ratio", 0)) {}

  bool takes_max() const { return takes_max_; }
  std::int64_t image(const KernelArgs& args, std::int64_t region) const {
    return clamp_index(static_cast<std::int64_t>(args.input<Index>(2)[region]), g_.batch);
  }

  /// Calls visit(offset, weight) for all elements that bin (row, column) reads.
  template <class Visit>
  void for_each_read(const KernelArgs& args, std::int64_t region, std::int64_t row,
                     std::int64_t column, Visit&& visit) const {
    const T* const corners = args.input<T>(1) + 4 * region;
    const Side across = side(corners[0], corners[2], g_.columns);
    const Side down = side(corners[1], corners[3], g_.rows);
    const double share =
        takes_max_ ? 1.0 : 1.0 / static_cast<double>(down.samples * across.samples);
    for (std::int64_t i = 0; i < down.samples; ++i) {
      const double y = down.sample(row, i);
      for (std::int64_t j = 0; j < across.samples; ++j) {
        const double x = across.sample(column, j);
        if (is_outside(y, g_.height) || is_outside(x, g_.width)) {
          visit(0, T{0});
          continue;
        }
        const Pair vertical = neighbours(y, g_.height);
        const Pair horizontal = neighbours(x, g_.width);
        const auto read = [&](std::int64_t at_y, double weight_y, std::int64_t at_x,
                              double weight_x) {
          visit(at_y * g_.width + at_x, static_cast<T>(weight_y * weight_x * share));
        };
        read(vertical.low, 1 - vertical.part, horizontal.low, 1 - horizontal.part);
        read(vertical.low, 1 - vertical.part, horizontal.high, horizontal.part);
        read(vertical.high, vertical.part, horizontal.low, 1 - horizontal.part);
        read(vertical.high, vertical.part, horizontal.high, horizontal.part);
      }
    }
  }

 private:
  /// A region from a diverged model must not take forever.
  static constexpr double kMostSamples = 1024;

  struct Side {
    double start;
    double bin;
    std::int64_t samples;
    double sample(std::int64_t at, std::int64_t i) const {
      const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(samples);
      return start + (static_cast<double>(at) + part) * bin;
    }
  };
  struct Pair {
    std::int64_t low;
    std::int64_t high;
    double part;  ///< the weight of `high`
  };

  Side side(T from, T to, std::int64_t bins) const {
    const double shift = shifts_ ? 0.5 : 0.0;
    const double start = static_cast<double>(from) * g_.scale - shift;
    double length = static_cast<double>(to) * g_.scale - shift - start;
    if (!shifts_) length = std::max(length, 1.0);
    const double bin = length / static_cast<double>(bins);
    const double wanted = samples_ > 0 ? static_cast<double>(samples_) : std::ceil(bin);
    const double samples = wanted > 0 ? std::min(wanted, kMostSamples) : 0;  // NaN too
    return {start, bin, static_cast<std::int64_t>(samples)};
  }
  static bool is_outside(double at, std::int64_t size) {
    return !(at >= -1.0 && at <= static_cast<double>(size));
  }
  static Pair neighbours(double at, std::int64_t size) {
    at = std::clamp(at, 0.0, static_cast<double>(size - 1));
    const auto low = static_cast<std::int64_t>(at);
    return {low, std::min(low + 1, size - 1), at - static_cast<double>(low)};
  }

  RoiGeometry g_;
  bool takes_max_;
  bool shifts_;
  std::int64_t samples_;
};

/// MaxRoiPool: all elements of a bin.
template <class T>
class PoolBins {
 public:
  PoolBins(const KernelRequest&, const RoiGeometry& geometry) : g_(geometry) {}

  static bool takes_max() { return true; }
  std::int64_t image(const KernelArgs& args, std::int64_t region) const {
    return clamp_index(whole(static_cast<double>(args.input<T>(1)[5 * region])), g_.batch);
  }

  template <class Visit>
  void for_each_read(const KernelArgs& args, std::int64_t region, std::int64_t row,
                     std::int64_t column, Visit&& visit) const {
    const T* const corners = args.input<T>(1) + 5 * region + 1;
    const Range across = range(corners[0], corners[2], column, g_.columns, g_.width);
    const Range down = range(corners[1], corners[3], row, g_.rows, g_.height);
    for (std::int64_t y = down.first; y < down.last; ++y) {
      for (std::int64_t x = across.first; x < across.last; ++x) visit(y * g_.width + x, T{1});
    }
  }

 private:
  struct Range {
    std::int64_t first;
    std::int64_t last;
  };

  /// Rounded; what no image reaches is limited.
  static std::int64_t whole(double number) {
    constexpr double kFar = 1e9;
    return number > -kFar ? static_cast<std::int64_t>(std::round(std::min(number, kFar)))
                          : static_cast<std::int64_t>(-kFar);
  }
  Range range(T from, T to, std::int64_t at, std::int64_t bins, std::int64_t size) const {
    const std::int64_t start = whole(static_cast<double>(from) * g_.scale);
    const std::int64_t end = whole(static_cast<double>(to) * g_.scale);
    const double bin =
        static_cast<double>(std::max<std::int64_t>(end - start + 1, 1)) / static_cast<double>(bins);
    const auto edge = [&](double place) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(place) + start, 0, size);
    };
    return {edge(std::floor(static_cast<double>(at) * bin)),
            edge(std::ceil(static_cast<double>(at + 1) * bin))};
  }

  RoiGeometry g_;
};

/// The greatest read of a bin, the first of equal ones; weight 0 when there is none.
template <class T>
struct Greatest {
  T value = 0;
  std::int64_t offset = 0;
  T weight = 0;
  bool found = false;

  void take(T read, std::int64_t at, T with) {
    if (found && !(read > value)) return;
    *this = {read, at, with, true};
  }
};

template <class T, class Bins>
T pool_bin(const Bins& bins, const KernelArgs& args, std::int64_t region, std::int64_t row,
           std::int64_t column, const T* plane) {
  if (bins.takes_max()) {
    Greatest<T> greatest;
    bins.for_each_read(args, region, row, column, [&](std::int64_t offset, T weight) {
      greatest.take(weight * plane[offset], offset, weight);
    });
    return greatest.value;
  }
  T sum = 0;
  bins.for_each_read(args, region, row, column,
                     [&](std::int64_t offset, T weight) { sum += weight * plane[offset]; });
  return sum;
}

template <class T, class Bins>
Kernel pool_regions(const RoiGeometry& g, const Bins& bins) {
  return [g, bins](const KernelArgs& args) {
    const std::int64_t grain = 512 / (g.bins() + 1) + 1;
    parallel_for(g.regions * g.channels, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t item = first; item < last; ++item) {
        const std::int64_t region = item / g.channels;
        const std::int64_t channel = bins.image(args, region) * g.channels + item % g.channels;
        const T* const plane = args.input<T>(0) + channel * g.plane();
        T* const y = args.output<T>() + item * g.bins();
        for (std::int64_t bin = 0; bin < g.bins(); ++bin) {
          y[bin] = pool_bin(bins, args, region, bin / g.columns, bin % g.columns, plane);
        }
      }
    });
  };
}

/// By channels: regions of one image add to the same elements. `dy_index` is the last input.
template <class T, class Bins>
Kernel add_gradients(const RoiGeometry& g, const Bins& bins, int dy_index) {
  return [g, bins, dy_index](const KernelArgs& args) {
    T* const dx = args.output<T>();
    fill_elements(dx, g.batch * g.channels * g.plane(), T{});
    const std::int64_t grain = 512 / (g.regions * g.bins() + 1) + 1;
    parallel_for(g.channels, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t channel = first; channel < last; ++channel) {
        for (std::int64_t item = 0; item < g.regions * g.bins(); ++item) {
          const std::int64_t region = item / g.bins();
          const std::int64_t bin = item % g.bins();
          const std::int64_t at = (bins.image(args, region) * g.channels + channel) * g.plane();
          const T dy = args.input<T>(dy_index)[(region * g.channels + channel) * g.bins() + bin];
          const std::int64_t row = bin / g.columns;
          const std::int64_t column = bin % g.columns;
          if (!bins.takes_max()) {
            bins.for_each_read(args, region, row, column, [&](std::int64_t offset, T weight) {
              dx[at + offset] += weight * dy;
            });
            continue;
          }
          const T* const plane = args.input<T>(0) + at;
          Greatest<T> greatest;
          bins.for_each_read(args, region, row, column, [&](std::int64_t offset, T weight) {
            greatest.take(weight * plane[offset], offset, weight);
          });
          dx[at + greatest.offset] += greatest.weight * dy;
        }
      }
    });
  };
}

/// Visits T and the bins of RoiAlign.
template <class Make>
void visit_align(const KernelRequest& request, const RoiGeometry& g, Make&& make) {
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    visit_index(request, 2, [&]<class Index>() {
      make.template operator()<T>(AlignBins<T, Index>(request, g));
    });
  });
}

RoiGeometry align_geometry(const KernelRequest& request) {
  return {request, request.attributes().get_int("output_height", 1),
          request.attributes().get_int("output_width", 1)};
}
RoiGeometry pool_geometry(const KernelRequest& request) {
  const std::vector<std::int64_t> size = request.attributes().get_ints("pooled_shape");
  return {request, size.at(0), size.at(1)};
}

Kernel make_roi_align(KernelRequest& request) {
  const RoiGeometry g = align_geometry(request);
  Kernel kernel;
  visit_align(request, g, [&]<class T>(const auto& bins) { kernel = pool_regions<T>(g, bins); });
  return kernel;
}

Kernel make_roi_align_grad(KernelRequest& request) {
  const RoiGeometry g = align_geometry(request);
  Kernel kernel;
  visit_align(request, g,
              [&]<class T>(const auto& bins) { kernel = add_gradients<T>(g, bins, 3); });
  return kernel;
}

Kernel make_max_roi_pool(KernelRequest& request) {
  const RoiGeometry g = pool_geometry(request);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(),
                     [&]<class T>() { kernel = pool_regions<T>(g, PoolBins<T>(request, g)); });
  return kernel;
}

Kernel make_max_roi_pool_grad(KernelRequest& request) {
  const RoiGeometry g = pool_geometry(request);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(),
                     [&]<class T>() { kernel = add_gradients<T>(g, PoolBins<T>(request, g), 2); });
  return kernel;
}

}  // namespace

void register_roi_cpu(KernelRegistry& registry) {
  registry.add({.op = "RoiAlign", .name = "plain", .make = make_roi_align});
  registry.add({.op = "MaxRoiPool", .name = "plain", .make = make_max_roi_pool});
  registry.add({.op = "RoiAlignGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_roi_align_grad});
  registry.add({.op = "MaxRoiPoolGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_max_roi_pool_grad});
}

}  // namespace graft
