// Convolutions of f32 rows of channels by 3 x 3 taps with a stride of 1, and their input gradients,
// in 16 products where taps one by one take 36 (winograd.h). Tiles are taken some at a time, so
// that what is made of them stays in a second cache. A tile with infinite results or NaN,
// which may be so by the detour alone, is summed again, tap by tap. Start at
// ConvByWinograd::run_task.
#include <algorithm>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/ops/conv/conv_clamp.h"
#include "core/ops/conv/conv_image.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_tiles.h"
#include "core/ops/conv/winograd_tiles.h"
#include "core/ops/conv/winograd_weight.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/tile_product.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

/// Of the vectors in which channels are turned.
constexpr int kLanes = kRegisterLanes;

/// Tiles of a task, unless there are fewer. With a slice of channels their numbers fill a quarter
/// of a second cache.
constexpr std::int64_t kGroup = 48;

class ConvByWinograd {
 public:
  ConvByWinograd(KernelRequest& request, const ConvGeometry& geometry, ConvDirection direction)
      : is_forward_(direction == ConvDirection::forward),
        sources_(is_forward_ ? geometry.inputs : geometry.outputs),
        targets_(is_forward_ ? geometry.outputs : geometry.inputs),
        tiles_(geometry, direction),
        group_(std::min(kGroup, tiles_.count())),
        groups_((tiles_.count() + group_ - 1) / group_),
        weight_(geometry, direction),
        pieces_(weight_.blocks() * groups_, multiply_adds(geometry)) {
    if (request.node().is("ConvClamp", kInternalDomain)) clamp_.emplace(request.attributes());
    WorkspaceLayout layout;
    if (const Tensor weight = request.constant(1); weight.defined()) {
      known_ = weight_.turn_now(weight.values<const float>().data());
    } else {
      block_ = layout.reserve<float>(pieces_.count * weight_.block_size());
    }
    turned_ = layout.reserve<float>(pieces_.count * turned_size());
    sums_ = layout.reserve<float>(pieces_.count * sums_size());
    edge_ = layout.reserve<float>(pieces_.count * edge_size());
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      const Piece own{args, workspace_at<float>(args, turned_) + piece * turned_size(),
                      workspace_at<float>(args, sums_) + piece * sums_size(),
                      workspace_at<float>(args, edge_) + piece * edge_size()};
      for (std::int64_t task = first; task < last; ++task) {
        const std::int64_t block = task / groups_;
        const bool is_new = task == first || task % groups_ == 0;
        run_task(own, weight_of(own, piece, block, is_new), block, task % groups_);
      }
    });
  }

 private:
  /// What a thread works with.
  struct Piece {
    const KernelArgs& args;
    float* turned;  ///< sources of a task, of a slice: [number][tile][source]
    float* sums;    ///< [number][tile][target of the block]
    float* edge;    ///< a tile's sources where some are padding: [4][4][source]
  };

  std::int64_t turned_step() const {
    return group_ * weight_.panels().slice_channels() + kOffPower;
  }
  std::int64_t sums_step() const { return group_ * weight_.most_width() + kOffPower; }
  /// Of what has room for a panel tap by tap, too.
  std::int64_t turned_size() const {
    return std::max(kTileNumbers * turned_step(), weight_.panels().block_size());
  }
  std::int64_t sums_size() const { return kTileNumbers * sums_step(); }
  std::int64_t edge_size() const { return kTileNumbers * weight_.panels().slice_channels(); }

  /// A block's part of the weight, turned: in memory of the piece, once, unless it is known before
  /// the run.
  const float* weight_of(const Piece& own, std::int64_t piece, std::int64_t block,
                         bool is_new) const {
    const std::int64_t size = weight_.block_size();
    if (known_ != nullptr) return known_->values<const float>().data() + block * size;
    float* const turned = workspace_at<float>(own.args, block_) + piece * size;
    if (is_new) weight_.turn(own.args.input<float>(1), block, own.turned, turned);
    return turned;
  }

  void run_task(const Piece& own, const float* weight, std::int64_t block,
                std::int64_t group) const {
    const std::int64_t first = group * group_;
    const std::int64_t count = std::min(group_, tiles_.count() - first);
    weight_.panels().for_each_slice([&](std::int64_t channel, std::int64_t channels) {
      const ImageChannels sources{own.args.input<float>(0), sources_, channel, channels};
      for (std::int64_t i = 0; i < count; ++i) {
        tiles_.turn_sources(sources, tiles_[first + i], own.edge,
                            {own.turned + i * channels, turned_step()});
      }
      weight_.for_each_panel(block, [&](const TargetBlock& panel, std::int64_t offset) {
        const float* const slice = weight + offset + kTileNumbers * channel * panel.row();
        float* const sums = own.sums + panel.first - block * WinogradWeight::kWidth;
        for (std::int64_t n = 0; n < kTileNumbers; ++n) {
          const TileOperand<std::int64_t> turned{own.turned + n * turned_step(), channels, 1};
          const auto multiply =
              channel == 0 ? tile_product<false, std::int64_t> : tile_product<true, std::int64_t>;
          multiply(turned, slice + n * channels * panel.row(), panel.row(), count, channels,
                   panel.row(), sums + n * sums_step(), weight_.most_width());
        }
      });
    });
    std::bitset<kGroup> is_spoiled;
    for (std::int64_t i = 0; i < count; ++i) {
      is_spoiled[static_cast<std::size_t>(i)] =
          !write_tile(own, block, tiles_[first + i], own.sums + i * weight_.most_width());
    }
    if (is_spoiled.any()) sum_by_taps(own, block, first, is_spoiled);
  }

  /// A sum plus the bias or the addend, clamped, to the target at that offset.
  void write(const KernelArgs& args, const Lanes<kLanes>& sum, std::int64_t offset,
             std::int64_t channel) const {
    const float* const given = args.input<float>(2);
    Lanes<kLanes> result = sum;
    if (given != nullptr) result += load<kLanes>(given + (is_forward_ ? 0 : offset) + channel);
    if (clamp_) result = clamped(result, *clamp_);
    store(args.output<float>() + offset + channel, result);
  }

  /// False, and nothing written, where a result is infinite or NaN, which it may be by the detour
  /// alone.
  bool write_tile(const Piece& own, std::int64_t block, const WinogradTiles::Tile& tile,
                  const float* sums) const {
    const std::int64_t width = weight_.width_of(block);
    float results[kTileTargets][kTileTargets][WinogradWeight::kWidth];
    Lanes<kLanes> zeros{};
    for (std::int64_t i = 0; i < width; i += kLanes) {
      Lanes<kLanes> targets[kTileTargets][kTileTargets];
      turn_sums<kLanes>(sums + i, sums_step(), targets);
      tiles_.for_each_target(tile, [&](std::int64_t r, std::int64_t c, std::int64_t /*position*/) {
        zeros += targets[r][c] - targets[r][c];
        store(results[r][c] + i, targets[r][c]);
      });
    }
    if (!are_zero(zeros)) return false;
    const std::int64_t first = block * WinogradWeight::kWidth;
    tiles_.for_each_target(tile, [&](std::int64_t r, std::int64_t c, std::int64_t position) {
      for (std::int64_t i = 0; i < width; i += kLanes) {
        write(own.args, load<kLanes>(results[r][c] + i), position * targets_, first + i);
      }
    });
    return true;
  }

  void sum_by_taps(const Piece& own, std::int64_t block, std::int64_t first,
                   const std::bitset<kGroup>& tiles) const {
    weight_.for_each_panel(block, [&](const TargetBlock& panel, std::int64_t /*offset*/) {
      weight_.panels().pack(own.args.input<float>(1), panel, own.turned);
      for (std::int64_t i = 0; i < kGroup; ++i) {
        if (!tiles[static_cast<std::size_t>(i)]) continue;
        const WinogradTiles::Tile tile = tiles_[first + i];
        tiles_.for_each_target(tile, [&](std::int64_t r, std::int64_t c, std::int64_t position) {
          for (std::int64_t lane = 0; lane < panel.width; lane += kLanes) {
            Lanes<kLanes> sum{};
            tiles_.for_each_meeting(tile, r, c, [&](std::int64_t tap, std::int64_t source) {
              add_tap(own, panel, tap, own.args.input<float>(0) + source * sources_, lane, sum);
            });
            write(own.args, sum, position * targets_, panel.first + lane);
          }
        });
      }
    });
  }

  /// Adds what a tap of a panel, which lies in order in place of turned sources, makes of a source.
  void add_tap(const Piece& own, const TargetBlock& panel, std::int64_t tap, const float* source,
               std::int64_t lane, Lanes<kLanes>& sum) const {
    weight_.panels().for_each_slice([&](std::int64_t first, std::int64_t channels) {
      const float* const weight = own.turned + weight_.panels().slice_offset(panel, first) +
                                  tap * channels * panel.row() + lane;
      for (std::int64_t i = 0; i < channels; ++i) {
        sum += source[first + i] * load<kLanes>(weight + i * panel.row());
      }
    });
  }

  bool is_forward_;
  std::int64_t sources_;  ///< channels
  std::int64_t targets_;
  WinogradTiles tiles_;
  std::int64_t group_;  ///< tiles of a task: all but the last of a block
  std::int64_t groups_;
  WinogradWeight weight_;
  Pieces pieces_;
  std::optional<ConvClamp> clamp_;
  std::shared_ptr<const Tensor> known_;
  // Offsets in the workspace.
  std::size_t block_ = 0;  ///< of each piece, of a weight that is not known before the run
  std::size_t turned_ = 0;
  std::size_t sums_ = 0;
  std::size_t edge_ = 0;
};

Kernel make(KernelRequest& request, ConvDirection direction) {
  const bool is_forward = direction == ConvDirection::forward;
  const TensorSpec addend = is_forward ? TensorSpec{} : input_or_none(request, 2);
  if (!takes_layouts({request.input(0), addend, request.output()}, TilesUse::where_fastest)) {
    return {};
  }
  const Shape& x = is_forward ? request.shape(0) : request.output().shape;
  const Shape& y = is_forward ? request.output().shape : request.shape(0);
  const ConvGeometry geometry(request.node(), x, request.shape(1), y);
  if (!WinogradTiles::suit(geometry, direction)) return {};
  return ConvByWinograd(request, geometry, direction);
}

}  // namespace

Kernel make_conv_by_winograd(KernelRequest& request) {
  return make(request, ConvDirection::forward);
}

Kernel make_conv_input_grad_by_winograd(KernelRequest& request) {
  return make(request, ConvDirection::input_grad);
}

}  // namespace graft
