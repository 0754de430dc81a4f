// Weight gradients of convolutions of bf16 by tiles (bf16_product.h). For a tap, dw[output]
// [input] is the sum of dy x over all positions of all images: a product whose inner length is
// their number, however short the rows of an image are. oneDNN multiplies row by row, each filled
// up to 32 positions. What a tap meets is gathered for 32 inputs at a time. Start at
// GatheredWeightGrad::run_task.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/base/at.h"
#include "core/ops/conv/conv_patterns.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_taps.h"
#include "core/ops/conv/conv_tiles.h"
#include "core/ops/kernels/amx.h"
#include "core/ops/kernels/bf16_panels.h"
#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/convert_floats.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/workspace.h"

namespace graft {

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace {

/// Inputs of a task.
constexpr std::int64_t kWidth = 32;
/// Positions that are gathered at a time: their pairs fill half of a first cache of 48 KiB.
constexpr std::int64_t kPositions = 384;
static_assert(kPositions % kBf16Inner == 0);

std::int64_t pieces_of(std::int64_t length, std::int64_t piece) {
  return (length + piece - 1) / piece;
}

class GatheredWeightGrad {
 public:
  GatheredWeightGrad(KernelRequest& request, const ConvGeometry& geometry)
      : g_(geometry),
        outputs_(bf16_padded(g_.outputs)),
        blocks_(pieces_of(g_.inputs, kWidth)),
        parts_(even_parts(blocks_, outputs_ / kBf16Inner)),
        pieces_(blocks_ * parts_, multiply_adds(g_)),
        met_(positions_met(g_)),
        tap_order_(static_cast<std::size_t>(g_.taps())),
        column_sums_(row_count(g_), g_.outputs),
        has_bias_(request.has_output(1)) {
    const std::int64_t dy_size = checked_multiply(bf16_padded(row_count(g_)), outputs_);
    const std::int64_t panel_size = kPositions * kWidth;
    const std::int64_t most_outputs = pieces_of(outputs_ / kBf16Inner, parts_) * kBf16Inner;
    sums_size_ = checked_multiply(g_.taps() * kWidth, most_outputs);
    std::iota(tap_order_.begin(), tap_order_.end(), std::int64_t{0});
    WorkspaceLayout layout;
    dy_ = layout.reserve<BFloat16>(dy_size);
    dy_columns_ = layout.reserve<BFloat16>(dy_size);
    x_ = layout.reserve<BFloat16>(pieces_.count * panel_size);
    x_pairs_ = layout.reserve<BFloat16>(pieces_.count * panel_size);
    sums_ = layout.reserve<float>(checked_multiply(pieces_.count, sums_size_));
    bias_ = layout.reserve<float>(has_bias_ ? g_.outputs : 0);
    bias_sums_ = layout.reserve_bytes(has_bias_ ? column_sums_.workspace_bytes() : 0);
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    pack_dy(args);
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      const AmxTiles tiles;
      for (std::int64_t task = first; task < last; ++task) run_task(args, piece, task);
    });
    if (!has_bias_) return;
    auto* const bias = workspace_at<float>(args, bias_);
    column_sums_.run(args.input<BFloat16>(1), bias, workspace_at<std::byte>(args, bias_sums_));
    convert_floats(bias, g_.outputs, args.output<BFloat16>(1));
  }

 private:
  /// Some inputs and some outputs, these padded.
  struct Task {
    std::int64_t first_input;
    std::int64_t inputs;
    std::int64_t first_output;
    std::int64_t outputs;
  };

  /// Where the outputs of a part begin; each has whole chunks of them.
  std::int64_t first_output_of(std::int64_t part) const {
    return outputs_ / kBf16Inner * part / parts_ * kBf16Inner;
  }

  Task task_at(std::int64_t index) const {
    const std::int64_t input = index / parts_ * kWidth;
    const std::int64_t output = first_output_of(index % parts_);
    return {input, std::min(kWidth, g_.inputs - input), output,
            first_output_of(index % parts_ + 1) - output};
  }

  /// Columns of dy as rows of 32 positions: [positions / 32][outputs][32].
  void pack_dy(const KernelArgs& args) const {
    const std::int64_t rows = row_count(g_);
    const BFloat16* const dy = args.input<BFloat16>(1);
    parallel_for(pieces_of(rows, kBf16Inner), 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin * kBf16Inner; row < std::min(rows, end * kBf16Inner);
           row += kBf16Inner) {
        const Bf16Panel panel{workspace_at<BFloat16>(args, dy_) + row * outputs_, kBf16Inner,
                              outputs_};
        fill_panel(dy + row * g_.outputs, g_.outputs, std::min(kBf16Inner, rows - row), g_.outputs,
                   panel);
        pack_columns(panel, workspace_at<BFloat16>(args, dy_columns_) + row * outputs_);
      }
    });
  }

  void run_task(const KernelArgs& args, std::int64_t piece, std::int64_t index) const {
    const Task task = task_at(index);
    const std::int64_t rows = row_count(g_);
    BFloat16* const x = workspace_at<BFloat16>(args, x_) + piece * kPositions * kWidth;
    auto* const pairs = reinterpret_cast<Bf16Pair*>(workspace_at<BFloat16>(args, x_pairs_) +
                                                    piece * kPositions * kWidth);
    float* const sums = workspace_at<float>(args, sums_) + piece * sums_size_;
    std::fill_n(sums, g_.taps() * task.outputs * kWidth, 0.0F);
    for (std::int64_t first = 0; first < rows; first += kPositions) {
      const std::int64_t count = std::min(kPositions, rows - first);
      const Bf16Panel panel{x, bf16_padded(count), kWidth};
      const BFloat16* const dy = workspace_at<BFloat16>(args, dy_columns_) + first * outputs_;
      for (std::int64_t tap = 0; tap < g_.taps(); ++tap) {
        gather(args.input<BFloat16>(0) + task.first_input, task.inputs, tap, first, count, panel);
        pack_row_pairs(panel, pairs);
        bf16_product<true>({dy + task.first_output * kBf16Inner, kBf16Inner, outputs_ * kBf16Inner},
                           {pairs, kWidth}, task.outputs / kBf16Side, kWidth / kBf16Side,
                           {panel.rows / kBf16Inner}, sums + tap * task.outputs * kWidth, kWidth);
      }
    }
    write(sums, task, args.output<BFloat16>());
  }

  /// What `count` outputs from `first` on meet by the tap: `inputs` numbers of each; 0 in padding
  /// and in what is left of the panel.
  void gather(const BFloat16* x, std::int64_t inputs, std::int64_t tap, std::int64_t first,
              std::int64_t count, const Bf16Panel& panel) const {
    const std::int64_t plane = g_.output_plane();
    const std::int32_t* const met = met_.data() + tap * plane;
    const BFloat16* image = x + first / plane * g_.input_plane() * g_.inputs;
    std::int64_t at = first % plane;
    BFloat16* to = panel.data;
    for (std::int64_t i = 0; i < count; ++i, to += kWidth) {
      const std::int64_t copied = met[at] < 0 ? 0 : inputs;
      if (copied == kWidth) {
        std::copy_n(image + met[at] * g_.inputs, kWidth, to);
      } else {
        std::fill_n(std::copy_n(image + (copied > 0 ? met[at] * g_.inputs : 0), copied, to),
                    kWidth - copied, BFloat16());
      }
      if (++at < plane) continue;
      at = 0;
      image += g_.input_plane() * g_.inputs;
    }
    std::fill_n(to, (panel.rows - count) * kWidth, BFloat16());
  }

  /// Sums [tap][output][input], rounded, to dw [output][input][tap].
  void write(const float* sums, const Task& task, BFloat16* dw) const {
    const std::int64_t taps = g_.taps();
    const std::int64_t outputs = std::min(task.outputs, g_.outputs - task.first_output);
    for (std::int64_t output = 0; output < outputs; ++output) {
      write_taps(sums + output * kWidth, task.outputs * kWidth, tap_order_, task.inputs,
                 dw + ((task.first_output + output) * g_.inputs + task.first_input) * taps);
    }
  }

  ConvGeometry g_;
  std::int64_t outputs_;  ///< padded
  std::int64_t blocks_;   ///< of inputs
  std::int64_t parts_;    ///< of outputs
  Pieces pieces_;
  std::vector<std::int32_t> met_;
  std::vector<std::int64_t> tap_order_;
  ColumnSums column_sums_;
  bool has_bias_;
  std::int64_t sums_size_ = 0;  ///< of a piece
  // Offsets in the workspace.
  std::size_t dy_ = 0;
  std::size_t dy_columns_ = 0;
  std::size_t x_ = 0;
  std::size_t x_pairs_ = 0;
  std::size_t sums_ = 0;
  std::size_t bias_ = 0;
  std::size_t bias_sums_ = 0;
};

/// Lists of what taps meet stay small.
bool fits(const ConvGeometry& g) {
  constexpr std::int64_t kMostMet = std::int64_t{1} << 20;
  return g.groups == 1 && g.rank <= 3 && row_count(g) > 0 && g.input_plane() > 0 &&
         g.input_plane() <= kMostMet && g.output_plane() <= kMostMet / g.taps();
}

/// Channels that fill tiles, and rows so short that oneDNN multiplies mostly with padding.
bool suits(const ConvGeometry& g) {
  constexpr std::int64_t kFewestChannels = 16;
  constexpr std::int64_t kLongestRow = 12;
  return std::min(g.inputs, g.outputs) >= kFewestChannels && g.axes[2].output <= kLongestRow;
}

}  // namespace

Kernel make_gathered_conv_weight_grad(KernelRequest& request, TilesUse use) {
  if (!lies_in_bf16_rows(request.input(0)) || !lies_in_bf16_rows(request.input(1)) ||
      !multiplies_bf16_faster()) {
    return {};
  }
  const ConvGeometry geometry(request.node(), request.shape(0), request.output().shape,
                              request.shape(1));
  if (!fits(geometry) || (use == TilesUse::where_fastest && !suits(geometry))) return {};
  return GatheredWeightGrad(request, geometry);
}

#else

Kernel make_gathered_conv_weight_grad(KernelRequest& /*request*/, TilesUse /*use*/) {
  return {};
}

#endif

}  // namespace graft
