// Weight gradients of convolutions of f32 by the processor's tiles of bf16, to which each number is
// the sum of three (adr/0086). For a tap, dw[output][input] is the sum of dy x over all positions
// of all images. dy is split once; what a tap meets is gathered and split for 32 inputs and 128
// positions at a time, while the tiles are busy. Start at WeightGradByParts::run_task.
#include <atomic>
#include <numeric>

#include "core/base/parallel.h"
#include "core/ops/conv/conv_patterns.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_taps.h"
#include "core/ops/conv/conv_tiles.h"
#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/split_product.h"
#include "core/ops/kernels/workspace.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

#include "core/ops/kernels/panel_block.h"

namespace graft {
namespace {

using Panel = PanelChunk[kPanelChunks];
using Block = float[kPanelSide * kPanelSide];

/// Splits 32 inputs of rows that lie anywhere: a unit is 16 of them in 32 rows.
class RowSplitter {
 public:
  static constexpr int kSteps = 16;

  explicit RowSplitter(Panel& to) : to_(to) {}

  /// null: zeros
  void add(const float* row) { rows_[count_++] = row == nullptr ? kZeros : row; }
  /// No more come; fills the last chunk with zeros.
  void close() {
    while (count_ % kBf16Inner != 0) add(nullptr);
  }

  bool has_unit() const { return unit_ < 2 * count_ / kBf16Inner; }
  static void begin_unit() {}
  template <int i>
  void step() {
    const std::int64_t chunk = unit_ / 2;
    const std::int64_t half = unit_ % 2;
    const auto numbers = [&](int row) {
      return load<16>(rows_[chunk * kBf16Inner + row] + half * kBf16Side);
    };
    detail::Words parts[kParts];
    detail::split(numbers(i), numbers(i + kBf16Side), parts, check_);
    unroll<kParts>([&]<int part>() {
      std::memcpy(to_[chunk][part][half] + i * kBf16Side, &parts[part], sizeof(parts[part]));
    });
  }
  void end_unit() { ++unit_; }
  /// All that is left. False where parts are no numbers.
  bool finish() {
    for (; has_unit(); end_unit()) unroll<kSteps>([&]<int i>() { step<i>(); });
    return !has_nan(check_);
  }

 private:
  static constexpr float kZeros[kPanelSide] = {};

  Panel& to_;
  const float* rows_[kPanelTerms];
  std::int64_t count_ = 0;
  std::int64_t unit_ = 0;
  Lanes16 check_ = {};
};

class WeightGradByParts {
 public:
  /// `plain` computes what has no parts, in so many bytes of workspace.
  WeightGradByParts(KernelRequest& request, const ConvGeometry& geometry, Kernel plain)
      : g_(geometry),
        plain_(std::move(plain)),
        rows_(row_count(g_)),
        output_panels_(panels_of(g_.outputs)),
        blocks_(panels_of(g_.inputs)),
        parts_(even_parts(blocks_, output_panels_)),
        pieces_(blocks_ * parts_, multiply_adds(g_)),
        met_(positions_met(g_)),
        tap_order_(static_cast<std::size_t>(g_.taps())),
        column_sums_(rows_, g_.outputs),
        has_bias_(request.has_output(1)) {
    sums_size_ = g_.taps() * ((output_panels_ + parts_ - 1) / parts_);
    std::iota(tap_order_.begin(), tap_order_.end(), std::int64_t{0});
    WorkspaceLayout layout;
    dy_ = layout.reserve<Panel>(checked_multiply(term_blocks_of(rows_), output_panels_));
    sums_ = layout.reserve<Block>(checked_multiply(pieces_.count, sums_size_));
    bias_sums_ = layout.reserve_bytes(has_bias_ ? column_sums_.workspace_bytes() : 0);
    request.need_workspace(std::max(layout.bytes(), request.workspace_bytes()));
  }

  void operator()(const KernelArgs& args) const {
    std::atomic<bool> is_finite = split_dy(args);
    if (is_finite) {
      pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
        const AmxTiles tiles;
        for (std::int64_t task = first; task < last; ++task) {
          if (!run_task(args, piece, task)) is_finite = false;
        }
      });
    }
    if (!is_finite) {
      plain_(args);
    } else if (has_bias_) {
      column_sums_.run(args.input<float>(1), args.output<float>(1),
                       workspace_at<std::byte>(args, bias_sums_));
    }
  }

 private:
  /// 32 inputs, and some panels of outputs.
  struct Task {
    std::int64_t first_input;
    std::int64_t first_panel;
    std::int64_t panels;
  };

  Task task_at(std::int64_t index) const {
    const std::int64_t part = index % parts_;
    const std::int64_t first = output_panels_ * part / parts_;
    return {index / parts_ * kPanelSide, first, output_panels_ * (part + 1) / parts_ - first};
  }

  PanelRange terms_of(std::int64_t block) const {
    return PanelRange::of(0, g_.outputs, block * kPanelTerms, rows_);
  }

  /// [block of positions][panel of outputs]. False where parts are no numbers.
  bool split_dy(const KernelArgs& args) const {
    const PanelOperand operand{args.input<float>(1), g_.outputs, true};
    std::atomic<bool> is_finite = true;
    parallel_for(term_blocks_of(rows_), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        for (std::int64_t i = 0; i < output_panels_; ++i) {
          const PanelRange range = PanelRange::of(i, g_.outputs, block * kPanelTerms, rows_);
          Panel& to = workspace_at<Panel>(args, dy_)[block * output_panels_ + i];
          if (!OperandPacker<true>(operand, range, to).finish()) is_finite = false;
        }
      }
    });
    return is_finite;
  }

  bool run_task(const KernelArgs& args, std::int64_t piece, std::int64_t index) const {
    const Task task = task_at(index);
    const float* const x = args.input<float>(0) + task.first_input;
    Block* const sums = workspace_at<Block>(args, sums_) + piece * sums_size_;
    std::fill_n(sums[0], g_.taps() * task.panels * kPanelSide * kPanelSide, 0.0F);
    alignas(64) Panel split[2];
    const std::int64_t count = term_blocks_of(rows_) * g_.taps();
    bool is_finite = splitter(x, 0, split[0]).finish();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t block = i / g_.taps();
      const Panel* const dy =
          workspace_at<Panel>(args, dy_) + block * output_panels_ + task.first_panel;
      RowSplitter next =
          i + 1 < count ? splitter(x, i + 1, split[(i + 1) % 2]) : RowSplitter(split[(i + 1) % 2]);
      for (std::int64_t panel = 0; panel < task.panels; ++panel) {
        float* const sum = sums[i % g_.taps() * task.panels + panel];
        load_sums(sum, kPanelSide);
        for (std::int64_t chunk = 0; chunk < terms_of(block).chunks(); ++chunk) {
          add_chunk<true>(dy[panel][chunk], split[i % 2][chunk], next);
        }
        store_sums(sum, kPanelSide);
      }
      is_finite &= next.finish();
    }
    write(sums, task, args.output<float>());
    return is_finite;
  }

  /// Of what a block of positions meets by a tap: index / taps, index % taps.
  RowSplitter splitter(const float* x, std::int64_t index, Panel& to) const {
    RowSplitter rows(to);
    const PanelRange terms = terms_of(index / g_.taps());
    const std::int64_t plane = g_.output_plane();
    const std::int32_t* const met = met_.data() + index % g_.taps() * plane;
    std::int64_t image = terms.term / plane;
    std::int64_t at = terms.term % plane;
    for (std::int64_t i = 0; i < terms.terms; ++i) {
      const std::int64_t position = image * g_.input_plane() + met[at];
      rows.add(met[at] < 0 ? nullptr : x + position * g_.inputs);
      if (++at < plane) continue;
      at = 0;
      ++image;
    }
    rows.close();
    return rows;
  }

  /// Sums [tap][panel][output][input] to dw [output][input][tap].
  void write(const Block* sums, const Task& task, float* dw) const {
    const std::int64_t taps = g_.taps();
    for (std::int64_t panel = 0; panel < task.panels; ++panel) {
      for (std::int64_t row = 0; row < kPanelSide; ++row) {
        const std::int64_t output = (task.first_panel + panel) * kPanelSide + row;
        write_taps(sums[panel] + row * kPanelSide, task.panels * kPanelSide * kPanelSide,
                   tap_order_, kPanelSide, dw + (output * g_.inputs + task.first_input) * taps);
      }
    }
  }

  ConvGeometry g_;
  Kernel plain_;
  std::int64_t rows_;  ///< positions of all images
  std::int64_t output_panels_;
  std::int64_t blocks_;  ///< of inputs
  std::int64_t parts_;   ///< of outputs
  Pieces pieces_;
  std::vector<std::int32_t> met_;
  std::vector<std::int64_t> tap_order_;
  ColumnSums column_sums_;
  bool has_bias_;
  std::int64_t sums_size_ = 0;  ///< blocks of a piece
  // Offsets in the workspace.
  std::size_t dy_ = 0;
  std::size_t sums_ = 0;
  std::size_t bias_sums_ = 0;
};

}  // namespace

Kernel make_conv_weight_grad_by_parts(KernelRequest& request) {
  if (!may_split()) return {};
  Kernel plain = make_conv_weight_grad_by_tiles(request, TilesUse::where_fastest);
  if (!plain) return {};
  const ConvGeometry geometry(request.node(), request.shape(0), request.output().shape,
                              request.shape(1));
  constexpr std::int64_t kMostMet = std::int64_t{1} << 20;
  const bool fits = geometry.inputs % kPanelSide == 0 && geometry.outputs % kPanelSide == 0 &&
                    geometry.taps() <= kMostMet / geometry.output_plane() &&
                    geometry.input_plane() <= kMostMet;
  if (!fits) return {};
  return WeightGradByParts(request, geometry, std::move(plain));
}

}  // namespace graft

#else

namespace graft {

Kernel make_conv_weight_grad_by_parts(KernelRequest& /*request*/) {
  return {};
}

}  // namespace graft

#endif
