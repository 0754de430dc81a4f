#include <vector>

#include "core/base/parallel.h"
#include "core/ops/image/grid_sample.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

constexpr int kMostAxes = 3;
constexpr int kMostTaps = 64;  // four along each axis

struct GridGeometry {
  explicit GridGeometry(const KernelRequest& request) : sampler(request.node()) {
    const Shape& x = request.shape(0);
    const Shape& grid = request.shape(1);
    axes = x.rank() - 2;
    batch = x[0];
    channels = x[1];
    plane = x.size(2, x.rank());
    points = grid.size(1, grid.rank() - 1);
    for (int axis = 0; axis < axes; ++axis) size[static_cast<std::size_t>(axis)] = x[axis + 2];
  }

  GridSampler sampler;
  int axes = 0;
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t plane = 0;   ///< elements of one channel
  std::int64_t points = 0;  ///< samples of one image
  std::array<std::int64_t, kMostAxes> size{1, 1, 1};
};

/// What one sample reads of each channel: offsets within the plane, their weights, and the slope of
/// each weight by each number of the grid.
template <class T>
struct Reads {
  int count = 0;
  std::array<std::int64_t, kMostTaps> offset;
  std::array<T, kMostTaps> weight;
  std::array<std::array<T, kMostTaps>, kMostAxes> slope;

  void add(const std::array<GridTaps<T>, kMostAxes>& taps, const GridGeometry& g,
           const std::array<int, kMostAxes>& tap) {
    const auto at = static_cast<std::size_t>(count);
    offset[at] = 0;
    weight[at] = 1;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(g.axes); ++axis) {
      const auto k = static_cast<std::size_t>(tap[axis]);
      if (taps[axis].index[k] < 0) return;
      offset[at] = offset[at] * g.size[axis] + taps[axis].index[k];
      weight[at] *= taps[axis].weight[k];
      slope[axis][at] = taps[axis].slope[k];
      for (std::size_t other = 0; other < static_cast<std::size_t>(g.axes); ++other) {
        if (other != axis)
          slope[axis][at] *= taps[other].weight[static_cast<std::size_t>(tap[other])];
      }
    }
    ++count;
  }
};

/// The grid's numbers stand in the order width, height, depth.
template <class T, class G>
void find_reads(const GridGeometry& g, const G* numbers, Reads<T>& reads) {
  std::array<GridTaps<T>, kMostAxes> taps;
  for (int axis = 0; axis < kMostAxes; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (axis < g.axes) {
      taps[i] = grid_taps(g.sampler, static_cast<T>(numbers[g.axes - 1 - axis]), g.size[i]);
    } else {
      taps[i].count = 1;
    }
  }
  reads.count = 0;
  std::array<int, kMostAxes> tap{};
  for (tap[0] = 0; tap[0] < taps[0].count; ++tap[0]) {
    for (tap[1] = 0; tap[1] < taps[1].count; ++tap[1]) {
      for (tap[2] = 0; tap[2] < taps[2].count; ++tap[2]) reads.add(taps, g, tap);
    }
  }
}

/// Calls body(image, point, reads) for all samples of images [first, last) of points.
template <class T, class G, class Body>
void for_each_sample(const GridGeometry& g, const G* grid, std::int64_t first, std::int64_t last,
                     Body&& body) {
  Reads<T> reads;
  for (std::int64_t at = first; at < last; ++at) {
    find_reads(g, grid + at * g.axes, reads);
    body(at / g.points, at % g.points, reads);
  }
}

std::int64_t grain_of(const GridGeometry& g) {
  return 4096 / (g.channels + 8) + 1;
}

template <class T, class G>
Kernel grid_sample_kernel(const GridGeometry& g) {
  return [g](const KernelArgs& args) {
    const T* const x = args.input<T>(0);
    T* const y = args.output<T>();
    parallel_for(g.batch * g.points, grain_of(g), [&](std::int64_t first, std::int64_t last) {
      for_each_sample<T>(g, args.input<G>(1), first, last,
                         [&](std::int64_t image, std::int64_t point, const Reads<T>& reads) {
                           for (std::int64_t c = 0; c < g.channels; ++c) {
                             const std::int64_t channel = image * g.channels + c;
                             T sum = 0;
                             for (int k = 0; k < reads.count; ++k) {
                               const auto i = static_cast<std::size_t>(k);
                               sum += reads.weight[i] * x[channel * g.plane + reads.offset[i]];
                             }
                             y[channel * g.points + point] = sum;
                           }
                         });
    });
  };
}

/// By images: samples of one image add to the same elements.
template <class T>
void add_image_gradients(const GridGeometry& g, const KernelArgs& args) {
  const T* const dy = args.input<T>(2);
  T* const dx = args.output<T>(0);
  fill_elements(dx, g.batch * g.channels * g.plane, T{});
  parallel_for(
      g.batch, grain_of(g) / (g.points + 1) + 1, [&](std::int64_t first, std::int64_t last) {
        for_each_sample<T>(g, args.input<T>(1), first * g.points, last * g.points,
                           [&](std::int64_t image, std::int64_t point, const Reads<T>& reads) {
                             for (std::int64_t c = 0; c < g.channels; ++c) {
                               const std::int64_t channel = image * g.channels + c;
                               const T gradient = dy[channel * g.points + point];
                               for (int k = 0; k < reads.count; ++k) {
                                 const auto i = static_cast<std::size_t>(k);
                                 dx[channel * g.plane + reads.offset[i]] +=
                                     reads.weight[i] * gradient;
                               }
                             }
                           });
      });
}

template <class T>
void find_grid_gradients(const GridGeometry& g, const KernelArgs& args) {
  const T* const x = args.input<T>(0);
  const T* const dy = args.input<T>(2);
  T* const dgrid = args.output<T>(1);
  parallel_for(g.batch * g.points, grain_of(g), [&](std::int64_t first, std::int64_t last) {
    for_each_sample<T>(g, args.input<T>(1), first, last,
                       [&](std::int64_t image, std::int64_t point, const Reads<T>& reads) {
                         std::array<T, kMostAxes> sum{};
                         for (std::int64_t c = 0; c < g.channels; ++c) {
                           const std::int64_t channel = image * g.channels + c;
                           const T gradient = dy[channel * g.points + point];
                           for (int k = 0; k < reads.count; ++k) {
                             const auto i = static_cast<std::size_t>(k);
                             const T value = gradient * x[channel * g.plane + reads.offset[i]];
                             for (int axis = 0; axis < g.axes; ++axis) {
                               const auto a = static_cast<std::size_t>(axis);
                               sum[a] += reads.slope[a][i] * value;
                             }
                           }
                         }
                         T* const to = dgrid + (image * g.points + point) * g.axes;
                         for (int axis = 0; axis < g.axes; ++axis) {
                           to[g.axes - 1 - axis] = sum[static_cast<std::size_t>(axis)];
                         }
                       });
  });
}

Kernel make_grid_sample(KernelRequest& request) {
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  const GridGeometry g(request);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(0), [&]<class T>() {
    visit_kernel_dtype(FloatTypes{}, request.dtype(1),
                       [&]<class G>() { kernel = grid_sample_kernel<T, G>(g); });
  });
  return kernel;
}

Kernel make_grid_sample_grad(KernelRequest& request) {
  const GridGeometry g(request);
  const bool wants_image = request.has_output(0);
  const bool wants_grid = request.has_output(1);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(0), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      if (wants_image) add_image_gradients<T>(g, args);
      if (wants_grid) find_grid_gradients<T>(g, args);
    };
  });
  return kernel;
}

}  // namespace

void register_grid_sample_cpu(KernelRegistry& registry) {
  registry.add({.op = "GridSample", .name = "plain", .make = make_grid_sample});
  registry.add(
      {.op = "PixelSample", .domain = kInternalDomain, .name = "plain", .make = make_grid_sample});
  registry.add({.op = "GridSampleGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_grid_sample_grad});
}

}  // namespace graft
