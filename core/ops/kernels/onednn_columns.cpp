#include "core/ops/kernels/onednn_columns.h"

#include <algorithm>
#include <vector>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/product.h"

namespace graft {
namespace {

/// One thread's share of the groups of images, its product and its columns.
struct Worker {
  std::int64_t first;
  std::int64_t last;
  Product<float> product;
  std::size_t columns;
  std::size_t scratch;
};

/// Floats of columns that stay in the second cache beside what they are multiplied with.
constexpr std::int64_t kMostColumns = kSecondCacheBytes / 2 / std::int64_t{sizeof(float)};

/// As many as the cache holds columns of, so that few products do; a divisor of the batch that
/// leaves each thread some.
std::int64_t images_of_product(const ConvGeometry& g) {
  const std::int64_t one = g.output_plane() * g.taps() * g.inputs;
  std::int64_t images =
      std::max<std::int64_t>(1, std::min(kMostColumns / one, g.batch / (2 * thread_count())));
  while (g.batch % images != 0) --images;
  return images;
}

class InputGradByColumns {
 public:
  InputGradByColumns(KernelRequest& request, const ConvGeometry& geometry)
      : g_(geometry), images_(images_of_product(geometry)) {
    WorkspaceLayout layout;
    weight_ = layout.reserve<float>(g_.outputs * width());
    const std::int64_t threads = thread_count();
    for (std::int64_t i = 0; i < threads; ++i) {
      const std::int64_t groups = g_.batch / images_;
      Worker worker{groups * i / threads, groups * (i + 1) / threads, product(), 0, 0};
      worker.columns = layout.reserve<float>(rows() * width());
      worker.scratch = layout.reserve_bytes(worker.product.scratch_bytes);
      workers_.push_back(std::move(worker));
    }
    packed_ = layout.reserve_bytes(workers_.front().product.packed_bytes);
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    const void* const weight = prepare_weight(args);
    const auto count = static_cast<std::int64_t>(workers_.size());
    parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        run_worker(args, workers_[static_cast<std::size_t>(i)], weight);
      }
    });
  }

 private:
  /// Columns: taps times channels.
  std::int64_t width() const { return g_.taps() * g_.inputs; }
  /// Outputs of the images of one product.
  std::int64_t rows() const { return images_ * g_.output_plane(); }

  /// A worker has its own: the operands of a product are bound at each run.
  Product<float> product() const {
    return onednn_product({.m = rows(),
                           .n = width(),
                           .k = g_.outputs,
                           .lda = g_.outputs,
                           .ldb = width(),
                           .ldc = width(),
                           .packs_b = true,
                           .is_serial = true});
  }

  /// w [M, C, taps] as [M, taps, C], in the product's layout.
  const void* prepare_weight(const KernelArgs& args) const {
    const auto* const from = args.input<float>(1);
    auto* const to = workspace_at<float>(args, weight_);
    const std::int64_t taps = g_.taps();
    parallel_for(g_.outputs, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first * width(); row < last * width(); row += width()) {
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          for (std::int64_t c = 0; c < g_.inputs; ++c) {
            to[row + tap * g_.inputs + c] = from[row + c * taps + tap];
          }
        }
      }
    });
    const Product<float>& product = workers_.front().product;
    if (product.packed_bytes == 0) return to;
    void* const packed = workspace_at<std::byte>(args, packed_);
    product.pack(to, packed);
    return packed;
  }

  void run_worker(const KernelArgs& args, const Worker& worker, const void* weight) const {
    auto* const columns = workspace_at<float>(args, worker.columns);
    const std::int64_t x_size = g_.input_plane() * g_.inputs;
    for (std::int64_t group = worker.first; group < worker.last; ++group) {
      worker.product.run(args.input<float>(0) + group * rows() * g_.outputs, weight, columns,
                         workspace_at<std::byte>(args, worker.scratch));
      float* const dx = args.output<float>() + group * images_ * x_size;
      std::fill_n(dx, images_ * x_size, 0.0F);
      for (std::int64_t image = 0; image < images_; ++image) {
        add_columns(columns + image * g_.output_plane() * width(), dx + image * x_size);
      }
    }
  }

  void add_columns(const float* columns, float* dx) const {
    const WindowAxis& height = g_.axes[1];
    const WindowAxis& width_axis = g_.axes[2];
    for (std::int64_t h = 0; h < height.output; ++h) {
      const Span rows = height.taps_of_output(h);
      for (std::int64_t w = 0; w < width_axis.output; ++w, columns += width()) {
        const Span taps = width_axis.taps_of_output(w);
        const std::int64_t count = taps.count() * g_.inputs;
        for (std::int64_t kh = rows.first; kh < rows.last; ++kh) {
          const float* const from = columns + (kh * width_axis.kernel + taps.first) * g_.inputs;
          const std::int64_t at =
              height.position(h, kh) * width_axis.input + width_axis.position(w, taps.first);
          float* const to = dx + at * g_.inputs;
#pragma omp simd
          for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
        }
      }
    }
  }

  ConvGeometry g_;
  std::int64_t images_;  ///< of one product
  std::vector<Worker> workers_;
  std::size_t weight_ = 0;
  std::size_t packed_ = 0;
};

/// Up to two vectors of channels with half of one empty, products long enough to pay for adding up
/// what they make, and images enough for all threads. There it takes 5 to 50 % less time than
/// oneDNN's convolutions (3 to 24 channels, 3x3 and 5x5); with vectors three quarters full up to 60
/// % more.
bool suits_columns(const ConvGeometry& g) {
  constexpr std::int64_t kLanes = 16;
  constexpr std::int64_t kFewestProducts = 256;
  const std::int64_t empty = (kLanes - g.inputs % kLanes) % kLanes;
  return g.groups == 1 && g.rank <= 2 && g.axes[2].dilation == 1 && g.taps() > 1 &&
         g.inputs <= 2 * kLanes && 2 * empty >= kLanes && g.taps() * g.outputs >= kFewestProducts &&
         g.batch >= 2 * thread_count() && g.output_plane() * g.taps() * g.inputs <= kMostColumns;
}

}  // namespace

Kernel input_grad_by_columns(KernelRequest& request, const ConvGeometry& geometry) {
  if (!suits_columns(geometry)) return {};
  return InputGradByColumns(request, geometry);
}

}  // namespace graft
