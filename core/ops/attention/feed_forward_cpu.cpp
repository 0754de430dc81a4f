// Hidden values are made for a block of rows and a range of hidden columns at a time, and used at
// once for all that needs them, while they lie in the cache:
//   h = x w1 + b1;  a = f(h);  y += a w2                               forward
//   dh = (dy w2^T) f'(h);  dx += dh w1^T;  dw2 += a^T dy;  dw1 += x^T dh;  db1 += sums of dh
// Threads take ranges of rows. Each sums gradients of weights by itself; those sums are added in
// the order of the rows. dx may overwrite x or dy: that of a block is written when the block is
// done. Start at ForwardKernel and GradKernel.
#include "core/ops/attention/feed_forward_blocks.h"
#include "core/ops/gradient.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/registry.h"

namespace graft {
namespace feed_forward {
namespace {

/// h = x w1 + b1 for some rows and columns; w1: packed.
template <class Products, class T>
void make_hidden(const KernelArgs& args, const Sizes& n, const T* w1, const T* b1, Range range,
                 std::int64_t row, std::int64_t rows, T* h) {
  fill_rows(b1 == nullptr ? b1 : b1 + range.first, rows, range.count, h);
  Products::template product<true>(args.input<T>(kX) + row * n.width, n.width,
                                   w1 + n.width * range.first, range.count,
                                   {rows, n.width, range.count}, h, range.count);
}

template <class Products>
class ForwardKernel {
  using T = typename Products::Number;

 public:
  explicit ForwardKernel(KernelRequest& request)
      : n_(request), activation_(request), pieces_(pieces_of(n_)) {
    WorkspaceLayout layout;
    w1_ = layout.reserve<T>(checked_multiply(n_.width, n_.hidden));
    strips_ = layout.reserve<T>(pieces_.count * 2 * kStripSize);
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    T* const w1 = workspace_at<T>(args, w1_);
    pack_ranges(args.input<T>(kW1), n_.hidden, 1, n_.width, n_.hidden, w1);
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      T* const strips = workspace_at<T>(args, strips_) + piece * 2 * kStripSize;
      for_each_block(n_, first, last, [&](std::int64_t row, std::int64_t rows) {
        T* const y = args.output<T>() + row * n_.columns;
        fill_rows(args.input<T>(kForwardB2), rows, n_.columns, y);
        for_each_range(n_.hidden, [&](Range range) {
          for_each_strip(rows, [&](std::int64_t strip, std::int64_t count) {
            add_strip(args, w1, range, row + strip, count, strips);
          });
        });
      });
    });
  }

 private:
  static constexpr std::int64_t kStripSize = kStripRows * kRangeColumns;

  void add_strip(const KernelArgs& args, const T* w1, Range range, std::int64_t row,
                 std::int64_t rows, T* h) const {
    T* const a = h + kStripSize;
    make_hidden<Products>(args, n_, w1, args.input<T>(kForwardB1), range, row, rows, h);
    activation_.apply(rows * range.count, h, a);
    Products::template product<true>(a, range.count, args.input<T>(kW2) + range.first * n_.columns,
                                     n_.columns, {rows, range.count, n_.columns},
                                     args.output<T>() + row * n_.columns, n_.columns);
  }

  Sizes n_;
  Activation activation_;
  Pieces pieces_;
  // Offsets in the workspace.
  std::size_t w1_;
  std::size_t strips_;
};

template <class Products>
class GradKernel {
  using T = typename Products::Number;

 public:
  explicit GradKernel(KernelRequest& request)
      : n_(request), activation_(request), pieces_(pieces_of(n_)) {
    WorkspaceLayout layout;
    const std::int64_t w1_size = checked_multiply(n_.width, n_.hidden);
    const std::int64_t w2_size = checked_multiply(n_.columns, n_.hidden);
    w1_ = layout.reserve<T>(w1_size);
    w1_rows_ = layout.reserve<T>(request.has_output(kDx) ? w1_size : 0);
    w2_columns_ = layout.reserve<T>(w2_size);
    blocks_ = layout.reserve<T>(pieces_.count * kScratchSize);
    dx_size_ = request.has_output(kDx) ? checked_multiply(kBlockRows, n_.width) : 0;
    dx_ = layout.reserve<T>(checked_multiply(pieces_.count, dx_size_));
    const auto reserve_parts = [&](int output, std::int64_t size) {
      part_sizes_[output] = size;
      const bool is_wanted = request.has_output(output);
      parts_[output] = layout.reserve<T>(
          is_wanted ? checked_multiply(std::max<std::int64_t>(pieces_.count, 1) - 1, size) : 0);
    };
    reserve_parts(kDw1, w1_size);
    reserve_parts(kDw2, w2_size);
    reserve_parts(kDb1, n_.hidden);
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    pack_ranges(args.input<T>(kW1), n_.hidden, 1, n_.width, n_.hidden, workspace_at<T>(args, w1_));
    pack_ranges(args.input<T>(kW2), 1, n_.columns, n_.columns, n_.hidden,
                workspace_at<T>(args, w2_columns_));
    if (dx_size_ > 0) {
      transpose(args.input<T>(kW1), n_.width, n_.hidden, workspace_at<T>(args, w1_rows_));
    }
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      for (const int output : {kDw1, kDw2, kDb1}) {
        T* const sum = part(args, output, piece);
        if (sum != nullptr) std::fill_n(sum, part_sizes_[output], T{0});
      }
      for_each_block(n_, first, last, [&](std::int64_t row, std::int64_t rows) {
        run_block(args, piece, row, rows);
      });
    });
    if (pieces_.count == 0) clear(args);
    for (const int output : {kDw1, kDw2, kDb1}) add_parts(args, output);
  }

 private:
  enum Output { kDx, kDw1, kDw2, kDb1 };
  static constexpr std::int64_t kStripSize = kStripRows * kRangeColumns;
  static constexpr std::int64_t kBlockSize = kBlockRows * kRangeColumns;
  static constexpr std::int64_t kScratchSize = kStripSize + 2 * kBlockSize;

  /// Where a piece sums the gradient of a weight; null where nobody wants it.
  T* part(const KernelArgs& args, int output, std::int64_t piece) const {
    T* const whole = args.output<T>(output);
    if (whole == nullptr || piece == 0) return whole;
    return workspace_at<T>(args, parts_[output]) + (piece - 1) * part_sizes_[output];
  }

  void clear(const KernelArgs& args) const {
    for (const int output : {kDw1, kDw2, kDb1}) {
      if (args.output<T>(output) != nullptr) {
        std::fill_n(args.output<T>(output), part_sizes_[output], T{0});
      }
    }
  }

  void run_block(const KernelArgs& args, std::int64_t piece, std::int64_t row,
                 std::int64_t rows) const {
    const T* const x = args.input<T>(kX) + row * n_.width;
    const T* const dy = args.input<T>(kGradDy) + row * n_.columns;
    T* const scratch = workspace_at<T>(args, blocks_) + piece * kScratchSize;
    T* const a = scratch + kStripSize;
    T* const dh = a + kBlockSize;
    T* const dx = workspace_at<T>(args, dx_) + piece * dx_size_;
    std::fill_n(dx, dx_size_, T{0});
    for_each_range(n_.hidden, [&](Range range) {
      for_each_strip(rows, [&](std::int64_t strip, std::int64_t count) {
        const std::int64_t at = strip * range.count;
        make_strip(args, range, row + strip, count, scratch, a + at, dh + at);
        if (dx_size_ == 0) return;
        Products::template product<true>(
            dh + at, range.count, workspace_at<T>(args, w1_rows_) + range.first * n_.width,
            n_.width, {count, range.count, n_.width}, dx + strip * n_.width, n_.width);
      });
      add_to(args, piece, range, rows, x, dy, a, dh);
    });
    if (dx_size_ > 0) std::copy_n(dx, rows * n_.width, args.output<T>(kDx) + row * n_.width);
  }

  /// a and dh of a strip.
  void make_strip(const KernelArgs& args, Range range, std::int64_t row, std::int64_t rows, T* h,
                  T* a, T* dh) const {
    make_hidden<Products>(args, n_, workspace_at<const T>(args, w1_), args.input<T>(kGradB1), range,
                          row, rows, h);
    activation_.apply(rows * range.count, h, a);
    Products::template product<false>(args.input<T>(kGradDy) + row * n_.columns, n_.columns,
                                      workspace_at<T>(args, w2_columns_) + n_.columns * range.first,
                                      range.count, {rows, n_.columns, range.count}, dh,
                                      range.count);
    activation_.apply_gradient(rows * range.count, h, a, dh, dh);
  }

  /// What the block adds to the sums over rows.
  void add_to(const KernelArgs& args, std::int64_t piece, Range range, std::int64_t rows,
              const T* x, const T* dy, const T* a, const T* dh) const {
    if (T* const dw1 = part(args, kDw1, piece)) {
      Products::add_transposed(x, n_.width, dh, range.count, {n_.width, rows, range.count},
                               dw1 + range.first, n_.hidden);
    }
    if (T* const dw2 = part(args, kDw2, piece)) {
      Products::add_transposed(a, range.count, dy, n_.columns, {range.count, rows, n_.columns},
                               dw2 + range.first * n_.columns, n_.columns);
    }
    if (T* const db1 = part(args, kDb1, piece)) {
      for (std::int64_t i = 0; i < rows; ++i) {
#pragma omp simd
        for (std::int64_t j = 0; j < range.count; ++j) {
          db1[range.first + j] += dh[i * range.count + j];
        }
      }
    }
  }

  void add_parts(const KernelArgs& args, int output) const {
    T* const whole = args.output<T>(output);
    if (whole == nullptr) return;
    parallel_for(part_sizes_[output], 16384, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t piece = 1; piece < pieces_.count; ++piece) {
        const T* const sum = part(args, output, piece);
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i) whole[i] += sum[i];
      }
    });
  }

  Sizes n_;
  Activation activation_;
  Pieces pieces_;
  // Offsets in the workspace.
  std::size_t w1_;          ///< by ranges: [width][range]
  std::size_t w1_rows_;     ///< [hidden][width]
  std::size_t w2_columns_;  ///< by ranges: [columns][range]
  std::size_t blocks_;      ///< of each piece: h of a strip, a and dh of a block
  std::size_t dx_;          ///< of each piece: dx of a block
  std::size_t parts_[4]{};
  std::int64_t dx_size_;  ///< of a block; 0 where nobody wants it
  std::int64_t part_sizes_[4]{};
};

/// A kernel may be copied; what it holds need not.
template <class Work>
Kernel shared_kernel(KernelRequest& request) {
  const auto work = std::make_shared<const Work>(request);
  return [work](const KernelArgs& args) { (*work)(args); };
}

template <template <class> class Work>
Kernel make_by_tiles(KernelRequest& request) {
  if (request.dtype() != DType::f32 || !TileProducts::suits(Sizes(request))) return {};
  return shared_kernel<Work<TileProducts>>(request);
}

template <template <class> class Work>
Kernel make_plain(KernelRequest& request) {
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(),
                     [&]<class T>() { kernel = shared_kernel<Work<PlainProducts<T>>>(request); });
  return kernel;
}

}  // namespace
}  // namespace feed_forward

void register_feed_forward_cpu(KernelRegistry& registry) {
  using namespace feed_forward;
  const auto add = [&](std::string_view op, std::string_view name, KernelFactory make) {
    registry.add({.op = op, .domain = kInternalDomain, .name = name, .make = make});
  };
  add("FeedForward", "tiles", make_by_tiles<ForwardKernel>);
  add("FeedForward", "plain", make_plain<ForwardKernel>);
  add("FeedForwardGrad", "tiles", make_by_tiles<GradKernel>);
  add("FeedForwardGrad", "plain", make_plain<GradKernel>);
}

}  // namespace graft
