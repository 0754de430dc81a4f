#include "core/ops/conv/conv_blocks.h"

#include "core/ops/kernels/held_constants.h"
#include "core/ops/kernels/transpose.h"

namespace graft {
namespace {

/// Taps and source channels of a slice: of a block it fills a quarter of a second cache.
constexpr std::int64_t kSlice = 1152;

/// Those of 16 numbers that lie before the end.
Lanes16 load_before(const float* end, const float* from) {
  if (end - from >= kTileLanes) return load<kTileLanes>(from);
  float numbers[kTileLanes] = {};
  std::copy(from, end, numbers);
  return load<kTileLanes>(numbers);
}

/// Channels and taps of a weight.
struct WeightSizes {
  std::int64_t sources;
  std::int64_t targets;
  std::int64_t taps;
};

/// `count` sources of a block, from [target][source][tap] to [tap][source][target].
void pack_columns(const float* weight, const WeightSizes& sizes, const TargetBlock& block,
                  std::int64_t count, float* to) {
  for (std::int64_t lane = 0; lane < block.width; lane += kTileLanes) {
    const float* rows[kTileLanes];
    for (int i = 0; i < kTileLanes; ++i) {
      const bool is_there = lane + i < block.width;
      rows[i] = is_there ? weight + (lane + i) * sizes.sources * sizes.taps : nullptr;
    }
    std::int64_t source = 0;
    std::int64_t tap = 0;
    for_each_column(rows, count * sizes.taps, [&](std::int64_t, const Lanes16& column) {
      store(to + (tap * count + source) * block.row() + lane, column);
      if (++tap < sizes.taps) return;
      tap = 0;
      ++source;
    });
  }
}

/// The same from [source][target][tap], taps from the last on.
void pack_rows(const float* weight, const float* end, const WeightSizes& sizes,
               const TargetBlock& block, std::int64_t count, float* to) {
  const std::int64_t taps = sizes.taps;
  for (std::int64_t source = 0; source < count; ++source, weight += sizes.targets * taps) {
    if (taps == 1) {
      std::fill_n(std::copy_n(weight, block.width, to + source * block.row()),
                  block.row() - block.width, 0.0F);
      continue;
    }
    for (std::int64_t lane = 0; lane < block.width; lane += kTileLanes) {
      for (std::int64_t tap = 0; tap < taps; tap += kTileLanes) {
        Lanes16 rows[kTileLanes];
        unroll<kTileLanes>([&]<int i>() {
          const bool is_there = lane + i < block.width;
          rows[i] = is_there ? load_before(end, weight + (lane + i) * taps + tap) : Lanes16{};
        });
        transpose(rows);
        for (std::int64_t i = 0; i < std::min<std::int64_t>(kTileLanes, taps - tap); ++i) {
          const std::int64_t from_last = taps - 1 - (tap + i);
          store(to + (from_last * count + source) * block.row() + lane, rows[i]);
        }
      }
    }
  }
}

}  // namespace

ConvBlocks::ConvBlocks(const ConvGeometry& geometry, ConvDirection direction)
    : is_forward_(direction == ConvDirection::forward),
      sources_(is_forward_ ? geometry.inputs : geometry.outputs),
      targets_(is_forward_ ? geometry.outputs : geometry.inputs),
      taps_(geometry.taps()),
      slice_(std::max<std::int64_t>(1, kSlice / taps_)) {}

void ConvBlocks::pack(const float* weight, const TargetBlock& block, float* to) const {
  const WeightSizes sizes{sources_, targets_, taps_};
  for_each_slice([&](std::int64_t first, std::int64_t count) {
    float* const slice = to + slice_offset(block, first);
    if (is_forward_) {
      pack_columns(weight + (block.first * sources_ + first) * taps_, sizes, block, count, slice);
    } else {
      pack_rows(weight + (first * targets_ + block.first) * taps_,
                weight + sources_ * targets_ * taps_, sizes, block, count, slice);
    }
  });
}

std::shared_ptr<const Tensor> ConvBlocks::pack_now(const float* weight) const {
  static HeldConstants<Tensor> held;
  auto made = std::make_shared<Tensor>(Tensor::zeros(DType::f32, {count(), block_size()}));
  for (std::int64_t i = 0; i < count(); ++i) {
    pack(weight, (*this)[i], made->values<float>().data() + i * block_size());
  }
  return held.share(weight, std::shared_ptr<const Tensor>(std::move(made)), equal_bits);
}

}  // namespace graft
