// Convolutions of bf16, and their input gradients, by tiles (bf16_product.h), for small
// images. Targets that meet sources by the same taps (ConvPattern) are multiplied 32 at a time, so
// that neither padding nor the ends of short rows are; oneDNN fills each row up to 16. What they
// meet is gathered. Start at Bf16Conv::run_task.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/at.h"
#include "core/ops/conv/conv_patterns.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_tiles.h"
#include "core/ops/kernels/amx.h"
#include "core/ops/kernels/bf16_panels.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/transpose.h"
#include "core/ops/kernels/workspace.h"

namespace graft {

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace {

constexpr std::int64_t kWidth = 64;  ///< targets of a block: what is gathered serves all of them
constexpr std::int64_t kRows = 2 * kBf16Side;

/// Where a weight's numbers lie, tap after tap.
struct WeightSteps {
  std::int64_t source;
  std::int64_t target;
};

class Bf16Conv {
 public:
  Bf16Conv(KernelRequest& request, const ConvGeometry& geometry, ConvDirection direction)
      : g_(geometry),
        is_forward_(direction == ConvDirection::forward),
        sources_(is_forward_ ? g_.inputs : g_.outputs),
        targets_(is_forward_ ? g_.outputs : g_.inputs),
        steps_(is_forward_ ? WeightSteps{g_.taps(), g_.inputs * g_.taps()}
                           : WeightSteps{g_.inputs * g_.taps(), g_.taps()}),
        chunks_(sources_ / kBf16Inner),
        blocks_((targets_ + kWidth - 1) / kWidth),
        patterns_(find(direction)),
        parts_(even_parts(blocks_, most_rows() / kRows)),
        pieces_(blocks_ * parts_, multiply_adds(g_)) {
    WorkspaceLayout layout;
    weights_ = layout.reserve<Bf16Pair>(checked_multiply(pieces_.count, weight_size()));
    gathered_ = layout.reserve<BFloat16>(checked_multiply(pieces_.count, gathered_size()));
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      const AmxTiles tiles;
      for (std::int64_t task = first; task < last; ++task) {
        const std::int64_t target = task / parts_ * kWidth;
        if (task == first || task % parts_ == 0) pack_weight(args, piece, target);
        run_task(args, piece, target, task % parts_);
      }
    });
  }

 private:
  struct Pattern {
    std::vector<TapShift> taps;
    std::vector<std::int64_t> weights;  ///< of each tap, where they begin
    std::vector<ConvPlace> places;
  };

  std::vector<Pattern> find(ConvDirection direction) const {
    std::vector<Pattern> patterns;
    for (ConvPattern& pattern : find_patterns(g_, direction, g_.batch)) {
      std::vector<std::int64_t> weights;
      for (const TapShift& tap : pattern.taps) {
        weights.push_back((is_forward_ ? tap.tap : g_.taps() - 1 - tap.tap) * tap_size());
      }
      patterns.push_back({std::move(pattern.taps), std::move(weights), std::move(pattern.places)});
    }
    return patterns;
  }

  std::int64_t width_of(std::int64_t target) const { return std::min(kWidth, targets_ - target); }
  std::int64_t tap_size() const { return sources_ / 2 * kWidth; }
  std::int64_t weight_size() const { return g_.taps() * tap_size(); }
  std::int64_t gathered_size() const { return g_.taps() * sources_ * kRows; }
  std::int64_t most_rows() const {
    std::size_t most = 1;
    for (const Pattern& pattern : patterns_) most = std::max(most, pattern.places.size());
    return static_cast<std::int64_t>(most);
  }
  Bf16Pair* weight(const KernelArgs& args, std::int64_t piece) const {
    return workspace_at<Bf16Pair>(args, weights_) + piece * weight_size();
  }

  /// Pairs of two sources: [tap][sources / 2][targets of the block].
  void pack_weight(const KernelArgs& args, std::int64_t piece, std::int64_t first) const {
    const BFloat16* const all = args.input<BFloat16>(1);
    const std::int64_t taps = g_.taps();
    Bf16Pair* const to = weight(args, piece);
    for (std::int64_t tap = 0; tap < taps; tap += kBf16Side) {
      const std::int64_t some = std::min(kBf16Side, taps - tap);
      for (std::int64_t source = 0; source < sources_; source += 2) {
        for (std::int64_t i = 0; i < width_of(first); i += kBf16Side) {
          const BFloat16* const from =
              all + source * steps_.source + (first + i) * steps_.target + tap;
          Lanes16 block[kBf16Side];
          for (std::int64_t t = 0; t < kBf16Side; ++t) {
            block[t] = taps_of(from + t * steps_.target, all);
          }
          transpose(block);
          for (std::int64_t t = 0; t < some; ++t) {
            std::memcpy(to + (tap + t) * tap_size() + source / 2 * kWidth + i, &block[t],
                        sizeof(block[0]));
          }
        }
      }
    }
  }

  /// Pairs of taps of a source and the next; what is read behind them does not matter, but must be
  /// the weight's.
  Lanes16 taps_of(const BFloat16* from, const BFloat16* all) const {
    const std::int64_t size = g_.inputs * g_.outputs * g_.taps();
    const std::int64_t left = size - (from + steps_.source - all);
    if (left >= kBf16Side) return detail::pairs_of(from, from + steps_.source);
    BFloat16 first[kBf16Side] = {};
    BFloat16 second[kBf16Side] = {};
    std::copy_n(from, left, first);
    std::copy_n(from + steps_.source, left, second);
    return detail::pairs_of(first, second);
  }

  void run_task(const KernelArgs& args, std::int64_t piece, std::int64_t target,
                std::int64_t part) const {
    BFloat16* const gathered = workspace_at<BFloat16>(args, gathered_) + piece * gathered_size();
    for (const Pattern& pattern : patterns_) {
      const auto count = static_cast<std::int64_t>(pattern.places.size());
      const std::int64_t end = count * (part + 1) / parts_;
      for (std::int64_t i = count * part / parts_; i < end; i += kRows) {
        const auto places =
            std::span(pattern.places).subspan(i, std::min<std::size_t>(kRows, end - i));
        gather(args.input<BFloat16>(0), pattern.taps, places, gathered);
        multiply(args, piece, target, pattern, places, gathered);
      }
    }
  }

  /// What places meet: [tap][sources / 32][32 places][32 sources].
  void gather(const BFloat16* sources, const std::vector<TapShift>& taps,
              std::span<const ConvPlace> places, BFloat16* to) const {
    const BFloat16* rows[kRows];
    for (std::int64_t r = 0; r < kRows; ++r) {
      rows[r] = sources + at(places, std::min(r, std::ssize(places) - 1)).source;
    }
    for (const TapShift& tap : taps) {
      for (std::int64_t c = 0; c < sources_; c += kBf16Inner) {
        for (const BFloat16* const row : rows) {
          to = std::copy_n(row + tap.shift + c, kBf16Inner, to);
        }
      }
    }
  }

  void multiply(const KernelArgs& args, std::int64_t piece, std::int64_t target,
                const Pattern& pattern, std::span<const ConvPlace> places,
                const BFloat16* gathered) const {
    const std::int64_t width = width_of(target);
    alignas(64) float sums[kRows * kWidth];
    const Bf16Terms terms{.chunks = chunks_,
                          .times = std::ssize(pattern.taps),
                          .a_step = sources_ * kRows,
                          .b_offsets = pattern.weights.data()};
    bf16_product<false>({gathered, kBf16Inner, kBf16Inner * kRows}, {weight(args, piece), kWidth},
                        kRows / kBf16Side, width / kBf16Side, terms, sums, kWidth);
    const BFloat16* const bias = is_forward_ ? args.input<BFloat16>(2) : nullptr;
    const float* from = sums;
    for (const ConvPlace& place : places) {
      BFloat16* const to = args.output<BFloat16>() + place.target + target;
      for (std::int64_t i = 0; i < width; i += kBf16Side) {
        Lanes16 sum = load<16>(from + i);
        if (bias != nullptr) sum += load<16>(bias + target + i);
        store(to + i, sum);
      }
      from += kWidth;
    }
  }

  ConvGeometry g_;
  bool is_forward_;
  std::int64_t sources_;  ///< channels
  std::int64_t targets_;
  WeightSteps steps_;
  std::int64_t chunks_;
  std::int64_t blocks_;  ///< of targets
  std::vector<Pattern> patterns_;
  std::int64_t parts_;  ///< of a pattern's places
  Pieces pieces_;
  // Offsets in the workspace.
  std::size_t weights_ = 0;
  std::size_t gathered_ = 0;
};

/// Channels that fill tiles, and rows so short that oneDNN multiplies mostly with what is none.
bool suits(const ConvGeometry& g, std::int64_t sources, std::int64_t targets, const WindowAxis& row,
           ConvDirection direction) {
  constexpr std::int64_t kLongestRow = 4;
  constexpr std::int64_t kMostTerms = 16384;
  constexpr std::int64_t kMostOffset = std::int64_t{1} << 30;
  // An input gradient's targets meet by the same taps where they are a stride apart.
  const bool is_forward = direction == ConvDirection::forward;
  const std::int64_t length = is_forward ? row.output : row.input / row.stride;
  const std::int64_t plane = std::max(g.input_plane(), g.output_plane());
  return g.groups == 1 && g.rank <= 3 && g.taps() > 1 && row_count(g) > 0 && g.input_plane() > 0 &&
         length <= kLongestRow && sources % kBf16Inner == 0 && targets % kBf16Side == 0 &&
         g.taps() <= kMostTerms / sources &&
         std::max(sources, targets) <= kMostOffset / plane / g.batch;
}

Kernel make(KernelRequest& request, ConvDirection direction) {
  const bool is_forward = direction == ConvDirection::forward;
  if (!lies_in_bf16_rows(request.input(0)) || !lies_in_bf16_rows(request.output()) ||
      !multiplies_bf16_faster() || (!is_forward && request.has_input(2))) {
    return {};
  }
  const Shape& x = is_forward ? request.shape(0) : request.output().shape;
  const Shape& y = is_forward ? request.output().shape : request.shape(0);
  const ConvGeometry g(request.node(), x, request.shape(1), y);
  const std::int64_t sources = is_forward ? g.inputs : g.outputs;
  const std::int64_t targets = is_forward ? g.outputs : g.inputs;
  if (!suits(g, sources, targets, g.axes[2], direction)) return {};
  return Bf16Conv(request, g, direction);
}

}  // namespace

Kernel make_bf16_conv(KernelRequest& request) {
  return make(request, ConvDirection::forward);
}

Kernel make_bf16_conv_input_grad(KernelRequest& request) {
  return make(request, ConvDirection::input_grad);
}

#else

Kernel make_bf16_conv(KernelRequest& /*request*/) {
  return {};
}

Kernel make_bf16_conv_input_grad(KernelRequest& /*request*/) {
  return {};
}

#endif

}  // namespace graft
