// Convolutions and their input gradients, f32 rows of channels. Both sum, for each target and its
// taps, products of a source's channels with a slice of the weight. Targets that meet sources by
// the same taps are taken together (a pattern): tiles of some of them and some of their channels
// are summed in registers. Start at ConvByTiles::run_task.
#include "core/ops/conv/conv_tiles.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/at.h"
#include "core/ops/conv/conv_blocks.h"
#include "core/ops/conv/conv_clamp.h"
#include "core/ops/conv/conv_image.h"
#include "core/ops/conv/conv_parts.h"
#include "core/ops/conv/conv_patterns.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_slice.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/lanes_math.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/register_tile.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

/// target[channel] = start[channel] + sum of source[c] weight[c][channel] over taps and c, in
/// registers.
template <int most, int vectors, int last = kVectorRegisters>
void add_tiles(std::span<const ConvPlace> places, std::span<const TapShift> taps,
               const float* sources, const Slice& slice, float* targets) {
  constexpr std::int64_t kRow = vectors * kTileLanes;
  for_each_row_tile<most>(std::ssize(places), [&]<int rows>(std::int64_t first) {
    const ConvPlace* const place = places.data() + first;
    RegisterTile<rows, vectors, last> tile;
    const float* source[rows];
    unroll<rows>([&]<int r>() { source[r] = sources + place[r].source; });
    for (const TapShift& tap : taps) {
      const float* weight = slice.weight + tap.tap * slice.channels * kRow;
      const std::int64_t end = tap.shift + slice.channels;
      for (std::int64_t at = tap.shift; at < end; ++at, weight += kRow) {
        tile.add(weight, [&](int r) { return source[r][at]; });
      }
    }
    const auto from = [&](int r) {
      return slice.start + (slice.has_own_start ? place[r].target : 0);
    };
    const auto to = [&](int r) { return targets + place[r].target; };
    if (slice.clamp == nullptr) {
      tile.write_sum(slice.width, from, to, std::identity());
    } else {
      tile.write_sum(slice.width, from, to,
                     [&](const auto& sums) { return clamped(sums, *slice.clamp); });
    }
  });
}

using AddTiles = void (*)(std::span<const ConvPlace>, std::span<const TapShift>,
                          const float* sources, const Slice&, float* targets);

/// For blocks of so many target channels. Each row takes a register for its address.
AddTiles add_tiles_of(std::int64_t width) {
  if constexpr (kHasWideRegisters) {
    constexpr AddTiles kTiles[] = {add_tiles<8, 1>, add_tiles<8, 2>, add_tiles<8, 3>,
                                   add_tiles<6, 4>};
    return kTiles[(width - 1) / kTileLanes];
  } else {
    AddTiles found = nullptr;
    with_count<kVectorRegisters>(registers_of(width), [&]<int last>() {
      constexpr int kMost = last == 1 ? 8 : 6;
      found = add_tiles<kMost, 1, last>;
    });
    return found;
  }
}

/// Of images whose sources and targets lie in a second cache with a block of the weight.
constexpr std::int64_t kGroupPositions = 1024;

std::int64_t images_of_group(std::int64_t batch, std::int64_t plane) {
  const std::int64_t most = std::max<std::int64_t>(1, kGroupPositions / plane);
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
        blocks_(g_, direction),
        parts_(count_parts()),
        pieces_(blocks_.count() * groups_ * parts_, multiply_adds(g_)),
        patterns_(find_patterns(g_, direction, images_)),
        split_(make_conv_parts(blocks_, images_ * source_plane_)),
        source_(request.input(0), Layout::channels_last, layout_),
        addend_(is_forward_ ? TensorSpec{} : input_or_none(request, 2), Layout::channels_last,
                layout_),
        target_(request.output(), Layout::channels_last, layout_) {
    if (request.node().is("ConvClamp", kInternalDomain)) clamp_.emplace(request.attributes());
    if (const Tensor known = request.constant(1); known.defined()) {
      known_blocks_ = blocks_.pack_now(known.values<const float>().data());
    } else {
      packed_ = layout_.reserve<float>(pieces_.count * blocks_.block_size());
    }
    for (std::int64_t i = 0; split_ != nullptr && i < pieces_.count; ++i) {
      scratch_.push_back(layout_.reserve_bytes(split_->scratch_bytes()));
    }
    request.need_workspace(layout_.bytes());
  }

  void operator()(const KernelArgs& args) const {
    const Images images{
        source_.read(args, args.input<float>(0)),
        is_forward_ ? args.input<float>(2) : addend_.read(args, args.input<float>(2)),
        target_.start(args, args.output<float>())};
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      OfPiece own;
      if (split_ != nullptr) own.scratch = workspace_at<std::byte>(args, at(scratch_, piece));
      for (std::int64_t task = first; task < last; ++task) {
        const std::int64_t block = task / (groups_ * parts_);
        const std::int64_t place = task % (groups_ * parts_);
        if (task == first || place == 0) {
          own.weight = weight_of(args, piece, block);
          own.is_new = true;
        }
        run_task(images, own, blocks_[block], place / parts_, place % parts_);
        own.is_new = false;
      }
    });
    target_.finish(args, args.output<float>());
  }

 private:
  struct Images {
    const float* sources;
    const float* given;  ///< the bias or the addend; null where there is none
    float* targets;
  };

  /// What a piece has of a block.
  struct OfPiece {
    const float* weight = nullptr;
    bool is_new = false;
    void* scratch = nullptr;  ///< for split_
    bool splits = false;      ///< whether the weight could be split
  };

  /// The block's part of the weight, brought into order in the memory of a piece unless it is
  /// known.
  const float* weight_of(const KernelArgs& args, std::int64_t piece, std::int64_t block) const {
    const std::int64_t size = blocks_.block_size();
    if (known_blocks_ != nullptr) return known_blocks_->values<const float>().data() + block * size;
    float* const packed = workspace_at<float>(args, packed_) + piece * size;
    blocks_.pack(args.input<float>(1), blocks_[block], packed);
    return packed;
  }

  /// The targets of a group are cut where that gives each thread as many tasks as the others.
  std::int64_t count_parts() const {
    constexpr std::int64_t kFewestRows = 12;
    const std::int64_t tasks = blocks_.count() * groups_;
    const std::int64_t most = std::max<std::int64_t>(1, images_ * target_plane_ / kFewestRows);
    std::int64_t parts = 1;
    while (parts < most && tasks * parts % thread_count() != 0) ++parts;
    return parts;
  }

  void run_task(const Images& all, OfPiece& own, const TargetBlock& block, std::int64_t group,
                std::int64_t part) const {
    const std::int64_t first = group * images_;
    const std::int64_t images = std::min(images_, g_.batch - first);
    const float* const sources = all.sources + first * source_plane_ * sources_;
    float* const targets = all.targets + first * target_plane_ * targets_ + block.first;
    const AddTiles add_tiles = add_tiles_of(block.width);
    blocks_.for_each_slice([&](std::int64_t channel, std::int64_t channels) {
      Slice slice{own.weight + blocks_.slice_offset(block, channel),
                  channel,
                  channels,
                  block.width,
                  targets,
                  true,
                  nullptr};
      if (channel == 0) start(all.given, first, block, slice);
      if (clamp_ && channel + channels == sources_) slice.clamp = &*clamp_;
      if (split_ != nullptr && (own.is_new || !blocks_.has_one_slice())) {
        own.splits = split_->split_weight(slice, own.scratch);
      }
      const bool is_split =
          own.splits && split_->split_sources(slice, sources, images * source_plane_, own.scratch);
      for (const ConvPattern& pattern : patterns_) {
        const auto places = places_of(pattern, images, part);
        if (is_split) {
          split_->add(places, pattern.taps, slice, targets, own.scratch);
        } else {
          add_tiles(places, pattern.taps, sources + channel, slice, targets);
        }
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

  /// The first products are added to zeros, or to the bias, the same for each target, or to the
  /// addend, whose places are theirs.
  void start(const float* given, std::int64_t image, const TargetBlock& block, Slice& slice) const {
    static constexpr float kZeros[ConvBlocks::kWidth] = {};
    slice.has_own_start = given != nullptr && !is_forward_;
    if (given == nullptr) {
      slice.start = kZeros;
    } else {
      slice.start = given + block.first + (is_forward_ ? 0 : image * target_plane_ * targets_);
    }
  }

  WorkspaceLayout layout_;
  ConvGeometry g_;
  bool is_forward_;
  std::int64_t sources_;  ///< channels
  std::int64_t targets_;
  std::int64_t source_plane_;
  std::int64_t target_plane_;
  std::int64_t images_;  ///< of a group
  std::int64_t groups_;
  ConvBlocks blocks_;
  std::int64_t parts_;  ///< of a group's targets
  Pieces pieces_;
  std::vector<ConvPattern> patterns_;
  std::shared_ptr<const ConvParts> split_;
  std::vector<std::size_t> scratch_{};  ///< of each piece, for split_
  ConvImage source_;
  ConvImage addend_;
  ConvImage target_;
  std::optional<ConvClamp> clamp_;
  std::shared_ptr<const Tensor> known_blocks_;
  std::size_t packed_ = 0;  ///< a block of each piece, of a weight that is not known before the run
};

/// With registers of 8 numbers there are few sums a tile, which channels fill better than whole
/// vectors: of few sources, whose weights share the first cache with them, tiles take 0.58 to 1.05
/// of the time of oneDNN's convolutions there, for more taps too.
bool suits_narrow_tiles(const ConvGeometry& g, std::int64_t sources, std::int64_t targets) {
  constexpr std::int64_t kFewestTargets = 16;
  constexpr std::int64_t kMostSources = 48;
  constexpr std::int64_t kMostTaps = 49;
  return kHasHalfRegisters && g.taps() <= kMostTaps && sources <= kMostSources &&
         targets >= kFewestTargets && fill_registers(targets);
}

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
  const bool is_wide =
      g.taps() <= kMostTaps && targets >= kFewestTargets && targets % kTileLanes == 0;
  return g.groups == 1 && !is_pointwise(g) && sources * g.taps() >= kFewestTerms &&
         (is_wide || suits_narrow_tiles(g, sources, targets)) && row_count(g) >= kFewestRows &&
         std::max(sources, targets) <= kMostChannels && g.input_plane() <= kMostPositions &&
         g.output_plane() <= kMostPositions;
}

/// Offsets do not outgrow a ConvPlace, and lists of them stay small.
bool fits_tiles(const ConvGeometry& g, std::int64_t sources, std::int64_t targets) {
  constexpr std::int64_t kMostMeetings = std::int64_t{1} << 20;
  constexpr std::int64_t kMostOffset = std::int64_t{1} << 30;
  const std::int64_t plane = std::max({kGroupPositions, g.input_plane(), g.output_plane()});
  return g.groups == 1 && sources > 0 && row_count(g) > 0 && g.input_plane() > 0 &&
         g.taps() <= kMostMeetings / plane && std::max(sources, targets) <= kMostOffset / plane;
}

Kernel make(KernelRequest& request, ConvDirection direction, TilesUse use) {
  const bool is_forward = direction == ConvDirection::forward;
  const TensorSpec addend = is_forward ? TensorSpec{} : input_or_none(request, 2);
  if (!takes_layouts({request.input(0), addend, request.output()}, use)) return {};
  const Shape& x = is_forward ? request.shape(0) : request.output().shape;
  const Shape& y = is_forward ? request.output().shape : request.shape(0);
  const ConvGeometry geometry(request.node(), x, request.shape(1), y);
  const std::int64_t sources = is_forward ? geometry.inputs : geometry.outputs;
  const std::int64_t targets = is_forward ? geometry.outputs : geometry.inputs;
  if (geometry.rank > 3) return {};
  if (use == TilesUse::where_fastest ? !suits_tiles(geometry, sources, targets)
                                     : !fits_tiles(geometry, sources, targets)) {
    return {};
  }
  return ConvByTiles(request, geometry, direction);
}

}  // namespace

Kernel make_conv_by_tiles(KernelRequest& request, TilesUse use) {
  return make(request, ConvDirection::forward, use);
}

Kernel make_conv_input_grad_by_tiles(KernelRequest& request, TilesUse use) {
  return make(request, ConvDirection::input_grad, use);
}

void register_conv_tiles(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view name, KernelFactory make) {
    const std::string_view domain = op == "Conv" ? "" : kInternalDomain;
    registry.add({.op = op, .domain = domain, .name = name, .make = make, .knows_layouts = true});
  };
  if constexpr (!kIsForCertainModels) {  // of 0.1 MB, which most small builds would not use
    add("Conv", "winograd", make_conv_by_winograd);
    add("ConvClamp", "winograd", make_conv_by_winograd);
    add("ConvInputGrad", "winograd", make_conv_input_grad_by_winograd);
    add("ConvWeightGrad", "winograd", make_conv_weight_grad_by_winograd);
  }
  add("ConvWeightGrad", "bf16_parts", make_conv_weight_grad_by_parts);
  if constexpr (kHasHalfRegisters) {
    add("ConvWeightGrad", "rows", make_conv_weight_grad_by_rows);
  }
  register_conv_by_tiles<TilesUse::where_fastest>(registry, "tiles");
  add("Conv", "bf16_tiles", make_bf16_conv);
  add("ConvInputGrad", "bf16_tiles", make_bf16_conv_input_grad);
  add("ConvWeightGrad", "bf16_tiles", make_bf16_conv_weight_grad);
  add("ConvWeightGrad", "bf16_gathered", [](KernelRequest& request) {
    return make_gathered_conv_weight_grad(request, TilesUse::where_fastest);
  });
}

}  // namespace graft
