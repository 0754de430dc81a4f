// Weight gradients of convolutions of f32 rows of channels by 3 x 3 taps with a stride of 1, in 16
// products where taps one by one take 36 (winograd.h): x and dy, turned, are multiplied and summed
// over tiles, some at a time, so that what is made of them stays in a second cache. Where a result
// is infinite or NaN, which may be so by the detour alone, another kernel computes all of them.
// Start at WeightGradByWinograd::run_task.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <numeric>

#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_taps.h"
#include "core/ops/conv/conv_tiles.h"
#include "core/ops/conv/winograd_tiles.h"
#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/tile_product.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

constexpr int kLanes = kRegisterLanes;
/// Inputs of a task.
constexpr std::int64_t kWidth = 64;
/// Outputs of a task at most, and at least unless there are fewer.
constexpr std::int64_t kMostOutputs = 64;
constexpr std::int64_t kFewestOutputs = 16;
/// Tiles that are turned together.
constexpr std::int64_t kGroup = 64;

class WeightGradByWinograd {
 public:
  /// `plain` computes what is not finite, in so many bytes of workspace.
  WeightGradByWinograd(KernelRequest& request, const ConvGeometry& geometry, Kernel plain)
      : g_(geometry),
        plain_(std::move(plain)),
        tiles_(g_, ConvDirection::forward),
        group_(std::min(kGroup, tiles_.count())),
        blocks_((g_.inputs + kWidth - 1) / kWidth),
        parts_(count_parts()),
        outputs_(vectors_of(parts_) * kTileLanes),
        pieces_(blocks_ * parts_, multiply_adds(g_)),
        column_sums_(row_count(g_), g_.outputs),
        has_bias_(request.has_output(1)) {
    WorkspaceLayout layout;
    x_ = layout.reserve<float>(pieces_.count * x_size());
    dy_ = layout.reserve<float>(pieces_.count * dy_size());
    sums_ = layout.reserve<float>(pieces_.count * sums_size());
    edge_ = layout.reserve<float>(pieces_.count * edge_size());
    bias_ = layout.reserve_bytes(has_bias_ ? column_sums_.workspace_bytes() : 0);
    request.need_workspace(std::max(layout.bytes(), request.workspace_bytes()));
  }

  void operator()(const KernelArgs& args) const {
    std::atomic<bool> is_finite = true;
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      const Piece own{args, workspace_at<float>(args, x_) + piece * x_size(),
                      workspace_at<float>(args, dy_) + piece * dy_size(),
                      workspace_at<float>(args, sums_) + piece * sums_size(),
                      workspace_at<float>(args, edge_) + piece * edge_size()};
      for (std::int64_t task = first; task < last && is_finite; ++task) {
        if (!run_task(own, task_at(task))) is_finite = false;
      }
    });
    if (!is_finite) {
      plain_(args);
    } else if (has_bias_) {
      column_sums_.run(args.input<float>(1), args.output<float>(1),
                       workspace_at<std::byte>(args, bias_));
    }
  }

 private:
  /// What a thread works with.
  struct Piece {
    const KernelArgs& args;
    float* x;     ///< turned: [number][tile][input of the task]
    float* dy;    ///< turned: [number][tile][output of the task]
    float* sums;  ///< [number][output][input]
    float* edge;  ///< a tile where some of it is padding
  };

  struct Task {
    std::int64_t first_input;
    std::int64_t inputs;
    std::int64_t first_output;
    std::int64_t outputs;
  };

  /// Of the outputs: as many for each thread.
  std::int64_t count_parts() const {
    const std::int64_t vectors = g_.outputs / kTileLanes;
    const std::int64_t fewest = (g_.outputs + kMostOutputs - 1) / kMostOutputs;
    const std::int64_t more = even_parts(blocks_ * fewest, g_.outputs / kFewestOutputs / fewest);
    return std::min(vectors, fewest * more);
  }
  /// Most vectors of outputs that one of so many parts has.
  std::int64_t vectors_of(std::int64_t parts) const {
    return (g_.outputs / kTileLanes + parts - 1) / parts;
  }

  std::int64_t x_step() const { return group_ * kWidth + kOffPower; }
  std::int64_t dy_step() const { return group_ * outputs_ + kOffPower; }
  std::int64_t sums_step() const { return outputs_ * kWidth + kOffPower; }
  std::int64_t x_size() const { return kTileNumbers * x_step(); }
  std::int64_t dy_size() const { return kTileNumbers * dy_step(); }
  std::int64_t sums_size() const { return kTileNumbers * sums_step(); }
  std::int64_t edge_size() const {
    return std::max(kTileNumbers * kWidth, kTileTargets * kTileTargets * outputs_);
  }

  Task task_at(std::int64_t index) const {
    const std::int64_t input = index / parts_ * kWidth;
    const std::int64_t part = index % parts_;
    const std::int64_t vectors = g_.outputs / kTileLanes;
    const std::int64_t output = vectors * part / parts_ * kTileLanes;
    return {input, std::min(kWidth, g_.inputs - input), output,
            vectors * (part + 1) / parts_ * kTileLanes - output};
  }

  /// False where a result is not finite.
  bool run_task(const Piece& own, const Task& task) const {
    std::fill_n(own.sums, sums_size(), 0.0F);
    for (std::int64_t first = 0; first < tiles_.count(); first += group_) {
      const std::int64_t count = std::min(group_, tiles_.count() - first);
      turn(own, task, first, count);
      for (std::int64_t n = 0; n < kTileNumbers; ++n) {
        using Adjacent = std::integral_constant<std::int64_t, 1>;
        const TileOperand<Adjacent> dy{own.dy + n * dy_step(), {}, task.outputs};
        tile_product<true>(dy, own.x + n * x_step(), task.inputs, task.outputs, count, task.inputs,
                           own.sums + n * sums_step(), task.inputs);
      }
    }
    return write(own, task);
  }

  void turn(const Piece& own, const Task& task, std::int64_t first, std::int64_t count) const {
    const ImageChannels x{own.args.input<float>(0), g_.inputs, task.first_input, task.inputs};
    const ImageChannels dy{own.args.input<float>(1), g_.outputs, task.first_output, task.outputs};
    for (std::int64_t i = 0; i < count; ++i) {
      const WinogradTiles::Tile tile = tiles_[first + i];
      tiles_.turn_sources(x, tile, own.edge, {own.x + i * task.inputs, x_step()});
      tiles_.turn_targets(dy, tile, own.edge, {own.dy + i * task.outputs, dy_step()});
    }
  }

  bool write(const Piece& own, const Task& task) const {
    static constexpr auto kOrder = [] {
      std::array<std::int64_t, kTileTaps> order{};
      std::iota(order.begin(), order.end(), std::int64_t{0});
      return order;
    }();
    Lanes<kLanes> zeros{};
    float by_taps[kTileTaps * kWidth];
    for (std::int64_t i = 0; i < task.outputs; ++i) {
      for (std::int64_t j = 0; j < task.inputs; j += kLanes) {
        Lanes<kLanes> taps[kTileTaps];
        turn_to_taps<kLanes>(own.sums + i * task.inputs + j, sums_step(), taps);
        for (std::int64_t tap = 0; tap < kTileTaps; ++tap) {
          zeros += taps[tap] - taps[tap];
          store(by_taps + tap * kWidth + j, taps[tap]);
        }
      }
      write_taps(by_taps, kWidth, kOrder, task.inputs,
                 own.args.output<float>() +
                     ((task.first_output + i) * g_.inputs + task.first_input) * kTileTaps);
    }
    return are_zero(zeros);
  }

  ConvGeometry g_;
  Kernel plain_;
  WinogradTiles tiles_;
  std::int64_t group_;    ///< tiles: all but the last
  std::int64_t blocks_;   ///< of inputs
  std::int64_t parts_;    ///< of outputs
  std::int64_t outputs_;  ///< most of a task
  Pieces pieces_;
  ColumnSums column_sums_;
  bool has_bias_;
  // Offsets in the workspace.
  std::size_t x_ = 0;
  std::size_t dy_ = 0;
  std::size_t sums_ = 0;
  std::size_t edge_ = 0;
  std::size_t bias_ = 0;
};

}  // namespace

Kernel make_conv_weight_grad_by_winograd(KernelRequest& request) {
  if (!takes_layouts({request.input(0), request.input(1)}, TilesUse::where_fastest)) return {};
  const ConvGeometry geometry(request.node(), request.shape(0), request.output().shape,
                              request.shape(1));
  if (!WinogradTiles::suit(geometry, ConvDirection::forward)) return {};
  Kernel plain = make_conv_weight_grad_by_tiles(request, TilesUse::anywhere);
  if (!plain) return {};
  return WeightGradByWinograd(request, geometry, std::move(plain));
}

}  // namespace graft
