// Convolutions and their input gradients, f32 rows of channels. Both sum, for each target and its
// taps, products of a source's channels with a slice of the weight. Targets that meet sources by
// the same taps are taken together (a pattern): tiles of some of them and some of their channels
// are summed in registers. Start at ConvByTiles::run_task.
#include "core/ops/conv/conv_tiles.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/ops/conv/conv_clamp.h"
#include "core/ops/conv/conv_patterns.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/kernels/lanes_math.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/register_tile.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Target channels of a block: all but the last.
constexpr std::int64_t kWidth = kMostTileVectors * kTileLanes;
/// Taps and source channels of a slice: of a block it fills a quarter of a second cache.
constexpr std::int64_t kSlice = 1152;

/// Some sources' part of a weight's block.
struct Slice {
  const float* weight;     ///< [tap][source][target]
  std::int64_t channels;   ///< sources
  const ConvClamp* clamp;  ///< of the last slice, where there is one
};

/// In each lane.
template <class V>
V clamped(const V& x, const ConvClamp& clamp) {
  const V lower = V{} + clamp.lower;
  const V upper = V{} + clamp.upper;
  const V above = x < lower ? lower : x;
  return above > upper ? upper : above;
}

/// target[channel] += source[c] weight[c][channel] over taps and c, in registers.
template <int most, int vectors>
void add_tiles(std::span<const ConvPlace> places, std::span<const TapShift> taps,
               const float* sources, const Slice& slice, float* targets) {
  constexpr std::int64_t kRow = vectors * kTileLanes;
  for_each_row_tile<most>(std::ssize(places), [&]<int rows>(std::int64_t first) {
    const ConvPlace* const place = places.data() + first;
    RegisterTile<rows, vectors> tile;
    for (const TapShift& tap : taps) {
      const float* source[rows];
      unroll<rows>([&]<int r>() { source[r] = sources + place[r].source + tap.shift; });
      const float* weight = slice.weight + tap.tap * slice.channels * kRow;
      for (std::int64_t c = 0; c < slice.channels; ++c, weight += kRow) {
        tile.add(weight, [&](int r) { return source[r][c]; });
      }
    }
    const auto target = [&](int r) { return targets + place[r].target; };
    if (slice.clamp == nullptr) {
      tile.template write<true>(target);
    } else {
      tile.template write<true>(target,
                                [&](const auto& sums) { return clamped(sums, *slice.clamp); });
    }
  });
}

using AddTiles = void (*)(std::span<const ConvPlace>, std::span<const TapShift>,
                          const float* sources, const Slice&, float* targets);

/// For blocks of so many vectors. Each row takes a register for its address.
AddTiles add_tiles_of(std::int64_t vectors) {
  if constexpr (!kHasWideRegisters) return add_tiles<6, 1>;
  constexpr AddTiles kTiles[] = {add_tiles<8, 1>, add_tiles<8, 2>, add_tiles<8, 3>,
                                 add_tiles<6, 4>};
  return kTiles[vectors - 1];
}

/// Those of 16 numbers that lie before the end.
Lanes16 load_before(const float* end, const float* from) {
  if (end - from >= kTileLanes) return load<kTileLanes>(from);
  float numbers[kTileLanes] = {};
  std::copy(from, end, numbers);
  return load<kTileLanes>(numbers);
}

/// Images whose sources and targets lie in a second cache with a block of the weight.
std::int64_t images_of_group(std::int64_t batch, std::int64_t plane) {
  constexpr std::int64_t kPositions = 1024;
  const std::int64_t most = std::max<std::int64_t>(1, kPositions / plane);
  const std::int64_t groups = (batch + most - 1) / most;
  return (batch + groups - 1) / groups;
}

class ConvByTiles {
 public:
  ConvByTiles(KernelRequest& request, const ConvGeometry& geometry, ConvDirection direction)
      : g_(geometry),
        is_forward_(direction == ConvDirection::forward),
        sources_(is_forward_ ? g_.inputs : g_.outputs),
        targets_(is_forward_ ? g_.outputs : g_.inputs),
        source_plane_(is_forward_ ? g_.input_plane() : g_.output_plane()),
        target_plane_(is_forward_ ? g_.output_plane() : g_.input_plane()),
        images_(images_of_group(g_.batch, std::max(source_plane_, target_plane_))),
        groups_((g_.batch + images_ - 1) / images_),
        slice_(std::max<std::int64_t>(1, kSlice / g_.taps())),
        blocks_((targets_ + kWidth - 1) / kWidth),
        parts_(count_parts()),
        pieces_(blocks_ * groups_ * parts_, multiply_adds(g_)),
        patterns_(find_patterns(g_, direction, images_)) {
    if (request.node().is("ConvClamp", kInternalDomain)) clamp_.emplace(request.attributes());
    WorkspaceLayout layout;
    weight_size_ = sources_ * g_.taps() * std::min(kWidth, targets_);
    weights_ = layout.reserve<float>(pieces_.count * weight_size_);
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      float* const weight = workspace_at<float>(args, weights_) + piece * weight_size_;
      for (std::int64_t task = first; task < last; ++task) {
        const Block block = block_at(task / (groups_ * parts_));
        const std::int64_t place = task % (groups_ * parts_);
        if (task == first || place == 0) pack(args.input<float>(1), block, weight);
        run_task(args, weight, block, place / parts_, place % parts_);
      }
    });
  }

 private:
  /// Some target channels.
  struct Block {
    std::int64_t first;
    std::int64_t width;
  };
  Block block_at(std::int64_t index) const {
    return {index * kWidth, std::min(kWidth, targets_ - index * kWidth)};
  }

  /// The targets of a group are cut where that gives each thread as many tasks as the others.
  std::int64_t count_parts() const {
    constexpr std::int64_t kFewestRows = 12;
    const std::int64_t tasks = blocks_ * groups_;
    const std::int64_t most = std::max<std::int64_t>(1, images_ * target_plane_ / kFewestRows);
    std::int64_t parts = 1;
    while (parts < most && tasks * parts % thread_count() != 0) ++parts;
    return parts;
  }

  /// Calls body(first, count) for the slices of source channels.
  template <class Body>
  void for_each_slice(Body&& body) const {
    for (std::int64_t first = 0; first < sources_; first += slice_) {
      body(first, std::min(slice_, sources_ - first));
    }
  }

  /// The part of the weight for a block of target channels: [slice][tap][source][target], with taps
  /// counted as in patterns.
  void pack(const float* weight, const Block& block, float* to) const {
    for_each_slice([&](std::int64_t first, std::int64_t count) {
      if (is_forward_) {
        pack_columns(weight + (block.first * sources_ + first) * g_.taps(), block, count, to);
      } else {
        pack_rows(weight + (first * targets_ + block.first) * g_.taps(),
                  weight + sources_ * targets_ * g_.taps(), block, count, to);
      }
      to += count * g_.taps() * block.width;
    });
  }

  /// From [target][source][tap].
  void pack_columns(const float* weight, const Block& block, std::int64_t count, float* to) const {
    for (std::int64_t lane = 0; lane < block.width; lane += kTileLanes) {
      const float* rows[kTileLanes];
      for (int i = 0; i < kTileLanes; ++i) rows[i] = weight + (lane + i) * sources_ * g_.taps();
      std::int64_t source = 0;
      std::int64_t tap = 0;
      for_each_column(rows, count * g_.taps(), [&](std::int64_t, const Lanes16& column) {
        store(to + (tap * count + source) * block.width + lane, column);
        if (++tap < g_.taps()) return;
        tap = 0;
        ++source;
      });
    }
  }

  /// From [source][target][tap].
  void pack_rows(const float* weight, const float* end, const Block& block, std::int64_t count,
                 float* to) const {
    const std::int64_t taps = g_.taps();
    for (std::int64_t source = 0; source < count; ++source, weight += targets_ * taps) {
      for (std::int64_t lane = 0; lane < block.width; lane += kTileLanes) {
        for (std::int64_t tap = 0; tap < taps; tap += kTileLanes) {
          Lanes16 rows[kTileLanes];
          unroll<kTileLanes>(
              [&]<int i>() { rows[i] = load_before(end, weight + (lane + i) * taps + tap); });
          transpose(rows);
          for (std::int64_t i = 0; i < std::min<std::int64_t>(kTileLanes, taps - tap); ++i) {
            const std::int64_t from_last = taps - 1 - (tap + i);
            store(to + (from_last * count + source) * block.width + lane, rows[i]);
          }
        }
      }
    }
  }

  void run_task(const KernelArgs& args, const float* weight, const Block& block, std::int64_t group,
                std::int64_t part) const {
    const std::int64_t first = group * images_;
    const std::int64_t images = std::min(images_, g_.batch - first);
    const float* const sources = args.input<float>(0) + first * source_plane_ * sources_;
    float* const targets = args.output<float>() + first * target_plane_ * targets_ + block.first;
    const Start start = start_of(args, first, block);
    for (const ConvPattern& pattern : patterns_) {
      begin(places_of(pattern, images, part), start, block.width, targets);
    }
    const AddTiles add_tiles = add_tiles_of(block.width / kTileLanes);
    for_each_slice([&](std::int64_t channel, std::int64_t channels) {
      const bool is_clamped = clamp_ && channel + channels == sources_;
      const Slice slice{weight + channel * g_.taps() * block.width, channels,
                        is_clamped ? &*clamp_ : nullptr};
      for (const ConvPattern& pattern : patterns_) {
        add_tiles(places_of(pattern, images, part), pattern.taps, sources + channel, slice,
                  targets);
      }
    });
  }

  std::span<const ConvPlace> places_of(const ConvPattern& pattern, std::int64_t images,
                                       std::int64_t part) const {
    const auto all = static_cast<std::int64_t>(pattern.places.size());
    const std::int64_t count = all / images_ * images;
    const auto begin = static_cast<std::size_t>(count * part / parts_);
    const auto end = static_cast<std::size_t>(count * (part + 1) / parts_);
    return std::span(pattern.places).subspan(begin, end - begin);
  }

  /// What targets hold before products are added to them: zeros, or the bias, the same for each,
  /// or the addend, whose places are theirs.
  struct Start {
    const float* numbers = nullptr;
    bool is_addend = false;
  };

  Start start_of(const KernelArgs& args, std::int64_t image, const Block& block) const {
    const auto* const given = args.input<float>(2);
    if (given == nullptr) return {};
    if (is_forward_) return {given + block.first};
    return {given + image * target_plane_ * targets_ + block.first, true};
  }

  static void begin(std::span<const ConvPlace> places, const Start& start, std::int64_t width,
                    float* targets) {
    if (start.is_addend && start.numbers == targets) return;  // in place
    for (const ConvPlace& place : places) {
      float* const to = targets + place.target;
      if (start.numbers == nullptr) {
        std::fill_n(to, width, 0.0F);
      } else {
        std::copy_n(start.numbers + (start.is_addend ? place.target : 0), width, to);
      }
    }
  }

  ConvGeometry g_;
  bool is_forward_;
  std::int64_t sources_;  ///< channels
  std::int64_t targets_;
  std::int64_t source_plane_;
  std::int64_t target_plane_;
  std::int64_t images_;  ///< of a group
  std::int64_t groups_;
  std::int64_t slice_;  ///< channels
  std::int64_t blocks_;
  std::int64_t parts_;  ///< of a group's targets
  Pieces pieces_;
  std::vector<ConvPattern> patterns_;
  std::optional<ConvClamp> clamp_;
  std::int64_t weight_size_ = 0;  ///< of a piece
  std::size_t weights_ = 0;
};

/// Whole vectors of channels and enough of them, sums long enough to pay for starting and adding to
/// them, targets enough to pay for packing the weight, and images so small that the edges count.
/// There tiles take 0.6 (512 channels of 4x4) to 1.05 of the time of oneDNN's convolutions, and a
/// quarter of their scratch memory. With more channels offsets could outgrow a ConvPlace.
bool suits_tiles(const ConvGeometry& g, std::int64_t sources, std::int64_t targets) {
  constexpr std::int64_t kFewestTargets = 48;
  constexpr std::int64_t kFewestTerms = 128;
  constexpr std::int64_t kMostTaps = 9;
  constexpr std::int64_t kFewestRows = 256;
  constexpr std::int64_t kMostPositions = 1024;
  constexpr std::int64_t kMostChannels = std::int64_t{1} << 20;
  return g.groups == 1 && !is_pointwise(g) && g.taps() <= kMostTaps &&
         sources * g.taps() >= kFewestTerms && targets >= kFewestTargets &&
         targets % kTileLanes == 0 && row_count(g) >= kFewestRows &&
         std::max(sources, targets) <= kMostChannels && g.input_plane() <= kMostPositions &&
         g.output_plane() <= kMostPositions;
}

Kernel make(KernelRequest& request, ConvDirection direction) {
  if (!lies_in_rows(request.input(0)) || !lies_in_rows(request.output())) return {};
  const bool is_forward = direction == ConvDirection::forward;
  if (!is_forward && request.has_input(2) && !lies_in_rows(request.input(2))) return {};
  const Shape& x = is_forward ? request.shape(0) : request.output().shape;
  const Shape& y = is_forward ? request.output().shape : request.shape(0);
  const ConvGeometry geometry(request.node(), x, request.shape(1), y);
  const std::int64_t sources = is_forward ? geometry.inputs : geometry.outputs;
  const std::int64_t targets = is_forward ? geometry.outputs : geometry.inputs;
  if (geometry.rank > 3 || !suits_tiles(geometry, sources, targets)) return {};
  return ConvByTiles(request, geometry, direction);
}

}  // namespace

Kernel make_conv_by_tiles(KernelRequest& request) {
  return make(request, ConvDirection::forward);
}

Kernel make_conv_input_grad_by_tiles(KernelRequest& request) {
  return make(request, ConvDirection::input_grad);
}

void register_conv_tiles(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add(
        {.op = op, .domain = domain, .name = "tiles", .make = make, .knows_layouts = true});
  };
  add("Conv", "", make_conv_by_tiles);
  add("ConvClamp", kInternalDomain, make_conv_by_tiles);
  add("ConvInputGrad", kInternalDomain, make_conv_input_grad_by_tiles);
  add("ConvWeightGrad", kInternalDomain, make_conv_weight_grad_by_tiles);
}

}  // namespace graft
