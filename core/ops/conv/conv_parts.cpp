#include "core/ops/conv/conv_parts.h"

#include "core/ops/kernels/amx_tiles.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

#include "core/ops/kernels/panel_block.h"
#include "core/ops/kernels/split_product.h"

namespace graft {
namespace {

/// Chunks of a slice: taps times channels.
constexpr std::int64_t kMostTerms = 64;

class ByTiles : public ConvParts {
 public:
  ByTiles(const ConvBlocks& blocks, std::int64_t positions)
      : sources_(blocks.sources()),
        taps_(blocks.taps()),
        chunks_(blocks.slice_channels() / kBf16Inner),
        positions_(positions) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(2 * taps_ * chunks_) * sizeof(PanelChunk) +
           static_cast<std::size_t>(positions_ * chunks_) * sizeof(SplitRow);
  }

  bool split_weight(const Slice& slice, void* scratch) const override {
    const std::int64_t chunks = slice.channels / kBf16Inner;
    const std::int64_t row = (slice.width + kTileLanes - 1) / kTileLanes * kTileLanes;
    bool is_finite = true;
    for (std::int64_t outer = 0; outer < row; outer += kPanelSide) {
      for (std::int64_t tap = 0; tap < taps_; ++tap) {
        const PanelOperand operand{slice.weight + tap * slice.channels * row, row, true};
        const PanelRange range{outer, std::min(kPanelSide, row - outer), 0, slice.channels};
        PanelChunk* const to = weights(scratch) + (outer / kPanelSide * taps_ + tap) * chunks;
        is_finite &= OperandPacker<false>(operand, range, to).finish();
      }
    }
    return is_finite;
  }

  bool split_sources(const Slice& slice, const float* sources, std::int64_t positions,
                     void* scratch) const override {
    Lanes16 check = {};
    SplitRow* to = rows(scratch);
    for (std::int64_t i = 0; i < positions; ++i) {
      const float* const from = sources + i * sources_ + slice.first;
      for (std::int64_t c = 0; c < slice.channels; c += kBf16Inner, ++to) {
        detail::split(load<16>(from + c), load<16>(from + c + kBf16Side), to->parts, check);
      }
    }
    return !has_nan(check);
  }

  void add(std::span<const ConvPlace> places, std::span<const TapShift> taps, const Slice& slice,
           float* targets, void* scratch) const override {
    const AmxTiles tiles;
    for (std::size_t first = 0; first < places.size(); first += kPanelSide) {
      const auto some =
          places.subspan(first, std::min<std::size_t>(kPanelSide, places.size() - first));
      alignas(64) float sums[2][kPanelSide * kPanelSide];
      multiply(some, taps, slice, scratch, sums);
      for (std::int64_t outer = 0; outer < slice.width; outer += kPanelSide) {
        write(some, slice, outer, sums[outer / kPanelSide], targets);
      }
    }
  }

 private:
  /// A position's 32 channels, part by part.
  struct SplitRow {
    detail::Words parts[kParts];
  };

  PanelChunk* weights(void* scratch) const { return static_cast<PanelChunk*>(scratch); }
  SplitRow* rows(void* scratch) const {
    return reinterpret_cast<SplitRow*>(weights(scratch) + 2 * taps_ * chunks_);
  }

  /// Tap and channels that some terms belong to.
  struct Terms {
    std::int64_t source;  ///< from what a place meets by the first tap, in rows
    std::int64_t weight;  ///< chunk
  };

  /// Gathers what 32 places meet, chunk by chunk: a unit is one of these.
  class Gatherer {
   public:
    static constexpr int kSteps = 16;

    Gatherer(const SplitRow* const (&met)[kPanelSide], std::span<const Terms> terms, PanelChunk* to)
        : met_(met), terms_(terms), to_(to) {}

    bool has_unit() const { return unit_ < terms_.size(); }
    void begin_unit() {}
    template <int i>
    void step() const {
      copy(2 * i);
      copy(2 * i + 1);
    }
    void end_unit() { ++unit_; }
    void finish() {
      for (; has_unit(); end_unit()) unroll<kSteps>([&]<int i>() { step<i>(); });
    }

   private:
    void copy(int r) const {
      const SplitRow& row = met_[r][terms_[unit_].source];
      unroll<kParts>([&]<int part>() {
        const detail::Words pairs = row.parts[part];  // in one register
        std::memcpy(to_[unit_][part][r / kBf16Side] + r % kBf16Side * kBf16Side, &pairs,
                    sizeof(pairs));
      });
    }

    const SplitRow* const (&met_)[kPanelSide];
    std::span<const Terms> terms_;
    PanelChunk* to_;
    std::size_t unit_ = 0;
  };

  /// The sums of up to 32 places. Those of a few chunks at a time are added to them, for what is
  /// gathered for these stays in the first cache for all targets.
  void multiply(std::span<const ConvPlace> places, std::span<const TapShift> taps,
                const Slice& slice, void* scratch,
                float (&sums)[2][kPanelSide * kPanelSide]) const {
    const std::int64_t chunks = slice.channels / kBf16Inner;
    const SplitRow* met[kPanelSide];
    for (std::size_t r = 0; r < kPanelSide; ++r) {
      met[r] = rows(scratch) + places[std::min(r, places.size() - 1)].source / sources_ * chunks;
    }
    Terms all[kMostTerms];
    std::size_t count = 0;
    for (const TapShift& tap : taps) {
      for (std::int64_t c = 0; c < chunks; ++c) {
        all[count++] = {tap.shift / sources_ * chunks + c, tap.tap * chunks + c};
      }
    }
    const auto group = [&](std::size_t first) {
      const std::size_t begin = std::min(first, count);
      return std::span(all + begin, std::min<std::size_t>(kPanelChunks, count - begin));
    };
    const std::int64_t halves = (slice.width + kPanelSide - 1) / kPanelSide;
    std::fill_n(sums[0], halves * kPanelSide * kPanelSide, 0.0F);
    alignas(64) PanelChunk gathered[2][kPanelChunks];
    Gatherer(met, group(0), gathered[0]).finish();
    for (std::size_t first = 0; first < count; first += kPanelChunks) {
      const std::span<const Terms> terms = group(first);
      const PanelChunk* const source = gathered[first / kPanelChunks % 2];
      Gatherer next(met, group(first + kPanelChunks), gathered[(first / kPanelChunks + 1) % 2]);
      for (std::int64_t half = 0; half < halves; ++half) {
        const PanelChunk* const weight = weights(scratch) + half * taps_ * chunks;
        load_sums(sums[half], kPanelSide);
        for (std::size_t i = 0; i < terms.size(); ++i) {
          add_chunk<false>(weight[terms[i].weight], source[i], next);
        }
        store_sums(sums[half], kPanelSide);
      }
      next.finish();
    }
  }

  static void write(std::span<const ConvPlace> places, const Slice& slice, std::int64_t outer,
                    const float* sums, float* targets) {
    const std::int64_t width = std::min(kPanelSide, slice.width - outer);
    for (const ConvPlace& place : places) {
      const float* const from = slice.start + outer + (slice.has_own_start ? place.target : 0);
      float* const to = targets + place.target + outer;
      for_each_lanes(width, [&]<int lanes>(std::int64_t i) {
        const Lanes<lanes> sum = load<lanes>(from + i) + load<lanes>(sums + i);
        store(to + i, slice.clamp == nullptr ? sum : clamped(sum, *slice.clamp));
      });
      sums += kPanelSide;
    }
  }

  std::int64_t sources_;  ///< channels
  std::int64_t taps_;
  std::int64_t chunks_;  ///< of a slice's channels, at most
  std::int64_t positions_;
};

}  // namespace

std::shared_ptr<const ConvParts> make_conv_parts(const ConvBlocks& blocks, std::int64_t positions) {
  const bool fits = blocks.sources() % kBf16Inner == 0 && blocks.slice_channels() % kBf16Inner == 0;
  const bool is_short = blocks.taps() <= kMostTerms * kBf16Inner / blocks.slice_channels();
  if (!fits || !is_short || !may_split()) return nullptr;
  return std::make_shared<ByTiles>(blocks, positions);
}

}  // namespace graft

#else

namespace graft {

std::shared_ptr<const ConvParts> make_conv_parts(const ConvBlocks& /*blocks*/,
                                                 std::int64_t /*positions*/) {
  return nullptr;
}

}  // namespace graft

#endif
