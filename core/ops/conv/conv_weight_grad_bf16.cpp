// Weight gradients of convolutions of bf16 by tiles (bf16_product.h). Positions of an image
// are ordered so that each tap is a shift (ConvTerms): rows of x, brought into pairs once, serve
// all taps, each from another row on. What the terms in between would add is zero times a number of
// x, so that where x is not finite another kernel computes. Start at Bf16WeightGrad::run_task.
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/at.h"
#include "core/ops/conv/conv_grad_operands.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_taps.h"
#include "core/ops/conv/conv_terms.h"
#include "core/ops/conv/conv_tiles.h"
#include "core/ops/kernels/amx.h"
#include "core/ops/kernels/bf16_panels.h"
#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/convert_floats.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/row_pairs.h"
#include "core/ops/kernels/workspace.h"

namespace graft {

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace {

constexpr std::int64_t kWidth = RowPairs::kWidth;  ///< columns of a task
/// Chunks of terms at a time: their pairs and dy's rows lie in a first cache.
constexpr std::int64_t kChunks = 8;
static_assert(ConvTerms::kChunk == kBf16Inner);

std::int64_t pieces_of(std::int64_t length, std::int64_t piece) {
  return (length + piece - 1) / piece;
}

/// Some columns, and some outputs, these padded.
struct Task {
  std::int64_t first_column;
  std::int64_t columns;
  std::int64_t first_output;
  std::int64_t outputs;

  std::int64_t tiles() const { return pieces_of(columns, kBf16Side); }
};

/// Rounds sums, [outputs / side][taps][side][columns], to dw [output][input][tap].
class Rounding {
 public:
  Rounding(const ConvGeometry& geometry, const ConvTerms& terms, std::int64_t side,
           std::int64_t taps_in_columns)
      : g_(geometry), side_(side), taps_in_columns_(taps_in_columns) {
    for (const ConvTerms::List& list : terms.lists()) {
      for (const ConvTerms::Tap& tap : list.taps) taps_.push_back(tap.index);
    }
  }

  /// That have sums of their own.
  std::int64_t taps() const { return std::ssize(taps_); }

  void write(const float* sums, const Task& task, BFloat16* dw) const {
    const std::int64_t outputs = std::min(task.outputs, g_.outputs - task.first_output);
    for (std::int64_t i = 0; i < outputs; ++i) {
      const float* const from = sums + (i / side_ * side_ * taps() + i % side_) * kWidth;
      BFloat16* const to = dw + (task.first_output + i) * g_.inputs * g_.taps();
      if (taps_in_columns_ > 1) {
        write_columns(from, task, to);
      } else {
        write_taps(from, side_ * kWidth, taps_, task.columns, to + task.first_column * g_.taps());
      }
    }
  }

 private:
  void write_columns(const float* sums, const Task& task, BFloat16* to) const {
    for (const std::int64_t tap : taps_) {
      for (std::int64_t i = 0; i < task.columns; ++i) {
        const std::int64_t column = task.first_column + i;
        to[column % g_.inputs * g_.taps() + column / g_.inputs + tap] =
            static_cast<BFloat16>(sums[i]);
      }
      sums += side_ * kWidth;
    }
  }

  ConvGeometry g_;
  std::int64_t side_;
  std::int64_t taps_in_columns_;
  std::vector<std::int64_t> taps_{};  ///< in the order of their sums
};

class Bf16WeightGrad {
 public:
  /// `plain` computes what is not finite, in so many bytes of workspace.
  Bf16WeightGrad(KernelRequest& request, const ConvGeometry& geometry, RowTaps row_taps,
                 Kernel plain)
      : g_(geometry),
        plain_(std::move(plain)),
        terms_(g_, row_taps),
        taps_in_columns_(row_taps == RowTaps::as_columns ? g_.axes[2].kernel : 1),
        columns_(taps_in_columns_ * g_.inputs),
        dy_terms_(g_, terms_),
        padded_(g_, terms_, kWidth),
        rounding_(g_, terms_, dy_terms_.side(), taps_in_columns_),
        blocks_(pieces_of(columns_, kWidth)),
        parts_(even_parts(blocks_, sides())),
        pieces_(blocks_ * parts_, multiply_adds(g_)),
        images_(std::clamp<std::int64_t>(kChunks / terms_.chunks(), 1, g_.batch)),
        chunks_(pieces_of(terms_.chunks(), pieces_of(terms_.chunks(), kChunks))),
        column_sums_(row_count(g_), g_.outputs),
        has_bias_(request.has_output(1)) {
    const std::int64_t shifts = terms_.places() - terms_.chunks() * kBf16Inner;
    pairs_size_ = (chunks_ * kBf16Inner + shifts) * kWidth;
    const std::int64_t most_outputs = pieces_of(sides(), parts_) * dy_terms_.side();
    sums_size_ = checked_multiply(rounding_.taps() * kWidth, most_outputs);
    WorkspaceLayout layout;
    dy_ = layout.reserve<BFloat16>(dy_terms_.size());
    if (pads()) {
      x_ = layout.reserve<BFloat16>(checked_multiply(pieces_.count * images_, padded_.size()));
    }
    pairs_ = layout.reserve<Bf16Pair>(
        checked_multiply(pieces_.count * list_count() * images_, pairs_size_));
    sums_ = layout.reserve<float>(checked_multiply(pieces_.count, sums_size_));
    bias_ = layout.reserve<float>(has_bias_ ? g_.outputs : 0);
    bias_sums_ = layout.reserve_bytes(has_bias_ ? column_sums_.workspace_bytes() : 0);
    request.need_workspace(std::max(layout.bytes(), request.workspace_bytes()));
  }

  void operator()(const KernelArgs& args) const {
    dy_terms_.pack(args.input<BFloat16>(1), terms_, workspace_at<BFloat16>(args, dy_));
    std::atomic<bool> is_finite = true;
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      const AmxTiles tiles;
      for (std::int64_t task = first; task < last && is_finite; ++task) {
        if (!run_task(args, piece, task)) is_finite = false;
      }
    });
    if (!is_finite) {
      plain_(args);
    } else if (has_bias_) {
      auto* const bias = workspace_at<float>(args, bias_);
      column_sums_.run(args.input<BFloat16>(1), bias, workspace_at<std::byte>(args, bias_sums_));
      convert_floats(bias, g_.outputs, args.output<BFloat16>(1));
    }
  }

 private:
  /// Some chunks of the terms of some images.
  struct Stretch {
    const KernelArgs& args;
    std::int64_t piece;
    std::int64_t image = 0;
    std::int64_t images = 0;
    std::int64_t chunk = 0;
    std::int64_t chunks = 0;
  };

  std::int64_t list_count() const { return std::ssize(terms_.lists()); }
  std::int64_t sides() const { return dy_terms_.outputs() / dy_terms_.side(); }
  bool pads() const { return taps_in_columns_ > 1; }

  std::int64_t first_output_of(std::int64_t part) const {
    return sides() * part / parts_ * dy_terms_.side();
  }

  Task task_at(std::int64_t index) const {
    const std::int64_t part = index % parts_;
    const std::int64_t column = index / parts_ * kWidth;
    const std::int64_t output = first_output_of(part);
    return {column, std::min(kWidth, columns_ - column), output,
            first_output_of(part + 1) - output};
  }

  /// False where numbers of x are not finite.
  bool run_task(const KernelArgs& args, std::int64_t piece, std::int64_t index) const {
    const Task task = task_at(index);
    float* const sums = workspace_at<float>(args, sums_) + piece * sums_size_;
    std::fill_n(sums, rounding_.taps() * task.outputs * kWidth, 0.0F);
    RowPairs rows;
    Stretch now{args, piece};
    for (; now.image < g_.batch; now.image += images_) {
      now.images = std::min(images_, g_.batch - now.image);
      for (std::int64_t i = 0; pads() && i < now.images; ++i) {
        padded_.fill(image(now, i), padded(now, i));
      }
      for (now.chunk = 0; now.chunk < terms_.chunks(); now.chunk += chunks_) {
        now.chunks = std::min(chunks_, terms_.chunks() - now.chunk);
        fill_pairs(now, task, rows);
        multiply(now, task, sums);
      }
    }
    if (!rows.are_finite()) return false;
    rounding_.write(sums, task, args.output<BFloat16>());
    return true;
  }

  const BFloat16* image(const Stretch& now, std::int64_t i) const {
    return now.args.input<BFloat16>(0) + (now.image + i) * g_.input_plane() * g_.inputs;
  }
  BFloat16* padded(const Stretch& now, std::int64_t i) const {
    return workspace_at<BFloat16>(now.args, x_) + (now.piece * images_ + i) * padded_.size();
  }
  /// Those of a list, image by image.
  Bf16Pair* pairs(const Stretch& now, std::int64_t list) const {
    return workspace_at<Bf16Pair>(now.args, pairs_) +
           (now.piece * list_count() + list) * images_ * pairs_size_;
  }

  void fill_pairs(const Stretch& now, const Task& task, RowPairs& rows) const {
    std::int64_t list = 0;
    for (const ConvTerms::List& meets : terms_.lists()) {
      Bf16Pair* const to = pairs(now, list++);
      const std::int32_t* const places = meets.places.data() + now.chunk * kBf16Inner;
      for (std::int64_t i = 0; i < now.images; ++i) {
        const BFloat16* const from = (pads() ? padded(now, i) : image(now, i)) + task.first_column;
        with_count<2>(task.tiles(), [&]<int tiles>() {
          rows.fill<tiles>(places, rows_of(now), from, g_.inputs, to + i * pairs_size_);
        });
      }
    }
  }

  /// Sums: [outputs / side][taps][side][columns].
  void multiply(const Stretch& now, const Task& task, float* sums) const {
    Bf16Terms terms{now.chunks, now.images, dy_terms_.image_size(), pairs_size_};
    if (now.chunk + now.chunks == terms_.chunks()) {
      terms.last = (terms_.last_terms() + 1) / 2 * 2;
    }
    const std::int64_t side = dy_terms_.side();
    for (std::int64_t output = 0; output < task.outputs; output += side) {
      const Bf16Rows dy{workspace_at<BFloat16>(now.args, dy_) +
                            dy_terms_.offset(task.first_output + output, now.image, now.chunk),
                        kBf16Inner, dy_terms_.chunk_size()};
      std::int64_t list = 0;
      for (const ConvTerms::List& meets : terms_.lists()) {
        const Bf16Pair* const x = pairs(now, list++);
        for (const ConvTerms::Tap& tap : meets.taps) {
          const std::int64_t row = RowPairs::pair_row(rows_of(now), tap.shift);
          bf16_product<true>(dy, {x + row * kWidth, kWidth}, side / kBf16Side, task.tiles(), terms,
                             sums, kWidth);
          sums += side * kWidth;
        }
      }
    }
  }

  /// Those whose pairs are asked for.
  std::int64_t rows_of(const Stretch& now) const {
    return now.chunks * kBf16Inner + terms_.places() - 1 - terms_.chunks() * kBf16Inner;
  }

  ConvGeometry g_;
  Kernel plain_;
  ConvTerms terms_;
  std::int64_t taps_in_columns_;
  std::int64_t columns_;
  TermsOfDy dy_terms_;
  PaddedImages padded_;
  Rounding rounding_;
  std::int64_t blocks_;  ///< of columns
  std::int64_t parts_;   ///< of outputs
  Pieces pieces_;
  std::int64_t images_;  ///< at a time
  std::int64_t chunks_;  ///< of an image at a time
  ColumnSums column_sums_;
  bool has_bias_;
  std::int64_t pairs_size_ = 0;  ///< of a list, for an image
  std::int64_t sums_size_ = 0;   ///< of a piece
  // Offsets in the workspace.
  std::size_t dy_ = 0;
  std::size_t x_ = 0;
  std::size_t pairs_ = 0;
  std::size_t sums_ = 0;
  std::size_t bias_ = 0;
  std::size_t bias_sums_ = 0;
};

/// Cycles for an image: a product of tiles, and some 100 for 32 rows of pairs.
double cost(const ConvGeometry& g, const ConvTerms& terms, std::int64_t columns) {
  const double product = may_use_amx() ? 16 : 128;
  constexpr double kRows = 100;
  const double outputs = static_cast<double>(pieces_of(g.outputs, kBf16Side));
  double cycles = 0;
  for (const ConvTerms::List& list : terms.lists()) {
    cycles += product * outputs * static_cast<double>(list.taps.size()) + kRows;
  }
  return cycles * static_cast<double>(terms.chunks() * pieces_of(columns, kBf16Side));
}

std::int64_t columns_of(const ConvGeometry& g, RowTaps row_taps) {
  return row_taps == RowTaps::as_columns ? g.axes[2].kernel * g.inputs : g.inputs;
}

/// The cheapest way to tell taps apart; none where channels or terms suit none.
std::optional<RowTaps> best_row_taps(const ConvGeometry& g) {
  std::optional<RowTaps> best;
  double least = 0;
  for (const RowTaps way : {RowTaps::shifted, RowTaps::apart, RowTaps::as_columns}) {
    const bool joins = way == RowTaps::as_columns;
    if ((!joins && g.inputs % kBf16Side != 0) || !ConvTerms::suit(g, way)) continue;
    const double cycles = cost(g, ConvTerms(g, way), columns_of(g, way));
    if (best && cycles >= least) continue;
    best = way;
    least = cycles;
  }
  return best;
}

/// By registers: whether it is faster than oneDNN, which multiplies with no padding but that of
/// short rows. What is multiplied here has the rest of the last tiles and terms, too.
bool suits_registers(const ConvGeometry& g, RowTaps row_taps) {
  constexpr std::int64_t kShortRow = 12;
  constexpr double kShareOfShortRows = 0.5;
  constexpr double kShareOfLongRows = 0.9;
  const ConvTerms terms(g, row_taps);
  const auto share = [](std::int64_t count, std::int64_t piece) {
    return static_cast<double>(count) / static_cast<double>(pieces_of(count, piece) * piece);
  };
  const double positions =
      static_cast<double>(g.output_plane()) / static_cast<double>(terms.chunks() * kBf16Inner);
  const double used = positions * share(g.outputs, TermsOfDy(g, terms).side()) *
                      share(columns_of(g, row_taps), kBf16Side);
  return used >= (g.axes[2].output <= kShortRow ? kShareOfShortRows : kShareOfLongRows);
}

}  // namespace

Kernel make_bf16_conv_weight_grad(KernelRequest& request) {
  if (!lies_in_bf16_rows(request.input(0)) || !lies_in_bf16_rows(request.input(1)) ||
      !multiplies_bf16_faster()) {
    return {};
  }
  const ConvGeometry geometry(request.node(), request.shape(0), request.output().shape,
                              request.shape(1));
  constexpr std::int64_t kFewestOutputs = 16;
  if (geometry.outputs < kFewestOutputs || geometry.taps() == 1) return {};
  Kernel plain = make_gathered_conv_weight_grad(request, TilesUse::anywhere);
  if (!plain) return {};
  const std::optional<RowTaps> row_taps = best_row_taps(geometry);
  if (!row_taps || !(may_use_amx() || suits_registers(geometry, *row_taps))) return {};
  return Bf16WeightGrad(request, geometry, *row_taps, std::move(plain));
}

#else

Kernel make_bf16_conv_weight_grad(KernelRequest& /*request*/) {
  return {};
}

#endif

}  // namespace graft
