// Convolutions as products of matrices, for what neither tiles nor oneDNN take: in builds without
// oneDNN a few, since tiles take most there and depthwise ones have a kernel of their own. Of each
// image, the elements that meet the taps are laid side by side, columns [channels * taps, outputs],
// some lines of outputs at a time so that they stay in the cache; the weight [M, channels * taps]
// multiplies them. Gradients are the products that belong to it. Source: Chellapilla et al., "High
// Performance Convolutional Neural Networks for Document Processing", 2006.
#include <algorithm>
#include <initializer_list>

#include "core/ops/conv/conv_columns.h"
#include "core/ops/conv/conv_image.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/multiply.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Channels enough on both sides of the product; with few, as where each has a group of its own,
/// laying out costs more than it saves.
bool suits_columns(const KernelRequest& request, const ConvGeometry& g) {
  constexpr std::int64_t kFewestOutputs = 4;
  constexpr std::int64_t kFewestRows = 8;
  return request.dtype() == DType::f32 && g.rank <= 3 && g.outputs >= kFewestOutputs &&
         g.inputs * g.taps() >= kFewestRows;
}

/// All row-major, or in different layouts, which nobody else takes. Where all could lie in
/// channels-last order, copies would cost what that order saves.
bool takes_layouts(std::initializer_list<TensorSpec> images) {
  bool has_channels_last = false;
  bool has_row_major = false;
  for (const TensorSpec& image : images) {
    if (image.layout == Layout::channels_last) {
      has_channels_last = true;
    } else if (image.dtype != DType::undefined && !is_layout_neutral(image.shape)) {
      has_row_major = true;
    }
  }
  return !has_channels_last || has_row_major;
}

Kernel make_conv(KernelRequest& request) {
  const ConvGeometry geometry(request.node(), request.shape(0), request.shape(1),
                              request.output().shape);
  if (!suits_columns(request, geometry) || !takes_layouts({request.input(0), request.output()})) {
    return {};
  }
  WorkspaceLayout layout;
  const ConvColumns all(geometry, layout);
  const ConvImage x(request.input(0), Layout::row_major, layout);
  const ConvImage y(request.output(), Layout::row_major, layout);
  request.need_workspace(layout.bytes());
  return [all, x, y, has_bias = request.has_input(2)](const KernelArgs& args) {
    const ConvGeometry& g = all.geometry();
    const float* const from = x.read(args, args.input<float>(0));
    float* const all_y = y.start(args, args.output<float>());
    all.for_each_image(args, [&](std::int64_t, std::int64_t image, float* columns) {
      const std::int64_t group = image % g.groups;
      float* const to = all_y + image * g.outputs * g.output_plane();
      for (std::int64_t m = 0; has_bias && m < g.outputs; ++m) {
        std::fill_n(to + m * g.output_plane(), g.output_plane(),
                    args.input<float>(2)[group * g.outputs + m]);
      }
      all.for_each_block([&](const ConvBlock& block) {
        all.fill(from + image * g.inputs * g.input_plane(), block, columns);
        multiply({.m = g.outputs,
                  .n = all.outputs_of(block),
                  .k = all.rows(),
                  .lda = all.rows(),
                  .ldb = all.outputs_of(block),
                  .ldc = g.output_plane(),
                  .adds = has_bias},
                 1.0F, args.input<float>(1) + group * g.outputs * all.rows(), columns,
                 to + all.offset_of(block));
      });
    });
    y.finish(args, args.output<float>());
  };
}

Kernel make_conv_input_grad(KernelRequest& request) {
  const ConvGeometry geometry(request.node(), request.output().shape, request.shape(1),
                              request.shape(0));
  if (!suits_columns(request, geometry) ||
      !takes_layouts({request.input(0), request.input(2), request.output()})) {
    return {};
  }
  WorkspaceLayout layout;
  const ConvColumns all(geometry, layout);
  const ConvImage dy(request.input(0), Layout::row_major, layout);
  const ConvImage addend(request.input(2), Layout::row_major, layout);
  const ConvImage dx(request.output(), Layout::row_major, layout);
  request.need_workspace(layout.bytes());
  return [all, dy, addend, dx](const KernelArgs& args) {
    const ConvGeometry& g = all.geometry();
    const float* const all_dy = dy.read(args, args.input<float>(0));
    const float* const start = addend.read(args, args.input<float>(2));
    float* const all_dx = dx.start(args, args.output<float>());
    const std::int64_t x_size = g.inputs * g.input_plane();
    all.for_each_image(args, [&](std::int64_t, std::int64_t image, float* columns) {
      const float* const from = all_dy + image * g.outputs * g.output_plane();
      float* const to = all_dx + image * x_size;
      if (start == nullptr) {
        std::fill_n(to, x_size, 0.0F);
      } else if (start + image * x_size != to) {
        std::copy_n(start + image * x_size, x_size, to);
      }
      all.for_each_block([&](const ConvBlock& block) {
        multiply({.m = all.rows(),
                  .n = all.outputs_of(block),
                  .k = g.outputs,
                  .lda = all.rows(),
                  .ldb = g.output_plane(),
                  .ldc = all.outputs_of(block),
                  .transposes_a = true},
                 1.0F, args.input<float>(1) + image % g.groups * g.outputs * all.rows(),
                 from + all.offset_of(block), columns);
        all.add(columns, block, to);
      });
    });
    dx.finish(args, args.output<float>());
  };
}

/// Each piece adds up the gradient of its blocks in f64 in memory of its own; these are added up in
/// order. A product adds up in f32: its sums are short, so that little is lost.
class WeightGrad {
 public:
  WeightGrad(KernelRequest& request, const ConvGeometry& g)
      : columns_(g, layout_, kLongestSum),
        x_(request.input(0), Layout::row_major, layout_),
        dy_(request.input(1), Layout::row_major, layout_),
        has_bias_(request.has_output(1)) {
    part_size_ = g.outputs * columns_.rows();
    size_ = g.groups * part_size_;
    const std::int64_t pieces = std::max<std::int64_t>(1, columns_.piece_count());
    parts_ = layout_.reserve<float>(checked_multiply(part_size_, pieces));
    sums_ = layout_.reserve<double>(checked_multiply(size_, pieces));
    request.need_workspace(layout_.bytes());
  }

  void operator()(const KernelArgs& args) const {
    const ConvGeometry& g = columns_.geometry();
    const float* const x = x_.read(args, args.input<float>(0));
    const float* const dy = dy_.read(args, args.input<float>(1));
    auto* const sums = workspace_at<double>(args, sums_);
    std::fill_n(sums, size_ * columns_.piece_count(), 0.0);
    columns_.for_each_image(args, [&](std::int64_t piece, std::int64_t image, float* columns) {
      add_image(x + image * g.inputs * g.input_plane(), dy + image * g.outputs * g.output_plane(),
                columns, workspace_at<float>(args, parts_) + piece * part_size_,
                sums + piece * size_ + image % g.groups * part_size_);
    });
    auto* const dw = args.output<float>(0);
    for (std::int64_t i = 0; i < size_; ++i) {
      double sum = 0.0;
      for (std::int64_t piece = 0; piece < columns_.piece_count(); ++piece) {
        sum += sums[piece * size_ + i];
      }
      dw[i] = static_cast<float>(sum);
    }
    if (has_bias_) sum_bias(g, dy, args.output<float>(1));
  }

 private:
  static constexpr std::int64_t kLongestSum = 64;

  void add_image(const float* x, const float* dy, float* columns, float* part, double* sums) const {
    const ConvGeometry& g = columns_.geometry();
    columns_.for_each_block([&](const ConvBlock& block) {
      columns_.fill(x, block, columns);
      multiply({.m = g.outputs,
                .n = columns_.rows(),
                .k = columns_.outputs_of(block),
                .lda = g.output_plane(),
                .ldb = columns_.outputs_of(block),
                .ldc = columns_.rows(),
                .transposes_b = true},
               1.0F, dy + columns_.offset_of(block), columns, part);
      for (std::int64_t i = 0; i < part_size_; ++i) sums[i] += static_cast<double>(part[i]);
    });
  }

  static void sum_bias(const ConvGeometry& g, const float* dy, float* db) {
    const std::int64_t channels = g.groups * g.outputs;
    for (std::int64_t m = 0; m < channels; ++m) {
      double sum = 0;
      for (std::int64_t n = 0; n < g.batch; ++n) {
        const float* const from = dy + (n * channels + m) * g.output_plane();
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < g.output_plane(); ++i) sum += static_cast<double>(from[i]);
      }
      db[m] = static_cast<float>(sum);
    }
  }

  WorkspaceLayout layout_;
  ConvColumns columns_;
  ConvImage x_;
  ConvImage dy_;
  bool has_bias_;
  std::int64_t size_ = 0;       ///< of dw
  std::int64_t part_size_ = 0;  ///< of a group of it
  std::size_t parts_ = 0;
  std::size_t sums_ = 0;
};

Kernel make_conv_weight_grad(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.output().shape, request.shape(1));
  if (!suits_columns(request, g) || !takes_layouts({request.input(0), request.input(1)})) return {};
  return WeightGrad(request, g);
}

}  // namespace

void register_conv_columns_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add(
        {.op = op, .domain = domain, .name = "columns", .make = make, .knows_layouts = true});
  };
  add("Conv", "", make_conv);
  add("ConvInputGrad", kInternalDomain, make_conv_input_grad);
  add("ConvWeightGrad", kInternalDomain, make_conv_weight_grad);
}

}  // namespace graft
