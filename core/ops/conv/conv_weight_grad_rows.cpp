// Weight gradients of convolutions, f32 rows of channels, as products of matrices: dw is dy' x',
// where a row of x' is what the taps of a position meet. Along the last axis that lies together, so
// that x' is no matrix of its own: its panels are copied from x (multiply_scattered). Any number of
// inputs fills them, since those of all taps stand side by side.
#include <vector>

#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_tiles.h"
#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/multiply.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

class WeightGradByRows {
 public:
  WeightGradByRows(KernelRequest& request, const ConvGeometry& geometry)
      : g_(geometry), column_sums_(row_count(g_), g_.outputs), has_bias_(request.has_output(1)) {
    const WindowAxis& height = g_.axes[1];
    const WindowAxis& width = g_.axes[2];
    places_.reserve(static_cast<std::size_t>(row_count(g_)));
    for (std::int64_t image = 0; image < g_.batch; ++image) {
      for (std::int64_t row = 0; row < height.output; ++row) {
        const std::int64_t line = image * height.input + height.position(row, 0);
        for (std::int64_t column = 0; column < width.output; ++column) {
          places_.push_back((line * width.input + width.position(column, 0)) * g_.inputs);
        }
      }
    }
    WorkspaceLayout layout;
    dw_ = layout.reserve<float>(g_.outputs * columns());
    bias_ = layout.reserve_bytes(has_bias_ ? column_sums_.workspace_bytes() : 0);
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    const auto* const dy = args.input<float>(1);
    auto* const dw = workspace_at<float>(args, dw_);
    const WindowAxis& height = g_.axes[1];
    const WindowAxis& width = g_.axes[2];
    const ScatteredRows x{args.input<float>(0), places_.data(), width.kernel * g_.inputs,
                          height.dilation * width.input * g_.inputs};
    multiply_scattered({.m = g_.outputs,
                        .n = columns(),
                        .k = row_count(g_),
                        .lda = g_.outputs,
                        .ldb = 0,
                        .ldc = columns(),
                        .transposes_a = true},
                       dy, x, dw);
    write(dw, args.output<float>());
    if (has_bias_) {
      column_sums_.run(dy, args.output<float>(1), workspace_at<std::byte>(args, bias_));
    }
  }

  /// Nothing met is padding, a line's taps lie together, and there are enough terms and sums of
  /// each output to pay for copying them.
  static bool suits(const ConvGeometry& g) {
    constexpr std::int64_t kFewestColumns = 64;
    constexpr std::int64_t kFewestOutputs = 32;
    constexpr std::int64_t kFewestRun = 32;
    constexpr std::int64_t kFewestRows = 256;
    constexpr std::int64_t kMostRows = std::int64_t{1} << 20;
    const auto is_inside = [](const WindowAxis& axis) {
      return axis.pad_begin == 0 && axis.position(axis.output - 1, axis.kernel - 1) < axis.input;
    };
    return g.groups == 1 && g.rank <= 2 && is_inside(g.axes[1]) && is_inside(g.axes[2]) &&
           (g.axes[2].kernel == 1 || g.axes[2].dilation == 1) && !is_pointwise(g) &&
           g.axes[2].kernel * g.inputs >= kFewestRun && g.taps() * g.inputs >= kFewestColumns &&
           g.outputs >= kFewestOutputs && row_count(g) >= kFewestRows && row_count(g) <= kMostRows;
  }

 private:
  /// Of dw as it is summed: [output][tap][input].
  std::int64_t columns() const { return g_.taps() * g_.inputs; }

  void write(const float* from, float* to) const {
    const std::int64_t taps = g_.taps();
    for (std::int64_t row = 0; row < g_.outputs * columns(); row += columns()) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        for (std::int64_t i = 0; i < g_.inputs; ++i) {
          to[row + i * taps + tap] = from[row + tap * g_.inputs + i];
        }
      }
    }
  }

  ConvGeometry g_;
  std::vector<std::int64_t> places_{};  ///< of x, by position
  ColumnSums column_sums_;
  bool has_bias_;
  std::size_t dw_ = 0;
  std::size_t bias_ = 0;
};

}  // namespace

Kernel make_conv_weight_grad_by_rows(KernelRequest& request) {
  if (!lies_in_rows(request.input(0)) || !lies_in_rows(request.input(1))) return {};
  const ConvGeometry geometry(request.node(), request.shape(0), request.output().shape,
                              request.shape(1));
  if (!WeightGradByRows::suits(geometry)) return {};
  return WeightGradByRows(request, geometry);
}

}  // namespace graft
