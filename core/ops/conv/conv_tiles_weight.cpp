// Weight gradients of convolutions, f32 rows of channels. For a tap, dw[output][input] is the sum
// of dy x over the positions that meet: a tile of dw is summed in registers along a list of them,
// so that padding costs nothing. The inputs are cut into blocks of some vectors; a stretch of x is
// copied so that a block's rows follow one another, and lies in the cache while all taps and
// outputs read it. Start at WeightGradByTiles::run_task.
#include <algorithm>

#include "core/base/at.h"
#include "core/ops/conv/conv_image.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_stretches.h"
#include "core/ops/conv/conv_tiles.h"
#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/register_tile.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

/// Rows of inputs, one an output, `step` apart.
struct Sums {
  float* numbers;
  std::int64_t step;
  std::int64_t width;  ///< inputs
};

/// sums[output][input] += dy[output] x[input] over the meetings, in registers.
template <int most, int vectors, int last = kVectorRegisters>
void add_tiles(std::span<const Meeting> meetings, const float* x, const float* dy,
               std::int64_t outputs, const Sums& sums) {
  for_each_row_tile<most>(outputs, [&]<int rows>(std::int64_t first) {
    RegisterTile<rows, vectors, last> tile;
    for (const Meeting& meeting : meetings) {
      const float* const factors = dy + first + meeting.y;
      tile.add(x + meeting.x, [&](int r) { return factors[r]; });
    }
    const auto to = [&](int r) { return sums.numbers + (first + r) * sums.step; };
    tile.write_sum(sums.width, to, to, std::identity());
  });
}

using AddTiles = void (*)(std::span<const Meeting>, const float* x, const float* dy,
                          std::int64_t outputs, const Sums& sums);

/// For blocks of so many inputs. Of 32 wide registers 24 hold sums, 12 for one vector; of AVX2's 16
/// at most 12.
AddTiles add_tiles_of(std::int64_t inputs) {
  if constexpr (kHasWideRegisters) {
    constexpr AddTiles kTiles[] = {add_tiles<12, 1>, add_tiles<12, 2>, add_tiles<8, 3>,
                                   add_tiles<6, 4>};
    return kTiles[(inputs - 1) / kTileLanes];
  } else {
    AddTiles found = nullptr;
    with_count<kVectorRegisters>(registers_of(inputs), [&]<int last>() {
      constexpr int kMost = last == 1 ? 12 : 6;
      found = add_tiles<kMost, 1, last>;
    });
    return found;
  }
}

/// Positions of x in a stretch: with four vectors each they fill a quarter of a second cache.
constexpr std::int64_t kPositions = 1024;
/// Outputs of a run: what they meet by one tap fills a third of a first cache. Their products
/// are summed by themselves, which also keeps rounding small.
constexpr std::int64_t kRun = 64;
/// Most outputs whose sums stay in the second cache beside the stretch.
constexpr std::int64_t kMostOfChunk = 48;
/// Outputs of a task, unless there are fewer.
constexpr std::int64_t kFewestOutputs = 12;

class WeightGradByTiles {
 public:
  WeightGradByTiles(KernelRequest& request, const ConvGeometry& geometry)
      : g_(geometry),
        vectors_(
            std::min<std::int64_t>(kMostTileVectors, (g_.inputs + kTileLanes - 1) / kTileLanes)),
        blocks_((g_.inputs + width() - 1) / width()),
        parts_(even_parts(blocks_, g_.outputs / kFewestOutputs)),
        pieces_(blocks_ * parts_, multiply_adds(g_)),
        stretches_(
            cut_into_stretches(g_, kPositions, {.x = width(), .y = g_.outputs, .run = kRun})),
        column_sums_(row_count(g_), g_.outputs),
        has_bias_(request.has_output(1)),
        x_image_(request.input(0), Layout::channels_last, layout_),
        dy_image_(request.input(1), Layout::channels_last, layout_) {
    std::int64_t most = 0;
    for (const Stretch& stretch : stretches_) most = std::max(most, stretch.x_count);
    const std::int64_t outputs = (g_.outputs + parts_ - 1) / parts_;
    x_size_ = most * width();
    sums_size_ = is_direct() ? 0 : g_.taps() * outputs * width();
    x_ = layout_.reserve<float>(pieces_.count * x_size_);
    sums_ = layout_.reserve<float>(pieces_.count * sums_size_);
    bias_ = layout_.reserve_bytes(has_bias_ ? column_sums_.workspace_bytes() : 0);
    request.need_workspace(layout_.bytes());
  }

  void operator()(const KernelArgs& args) const {
    const float* const x = x_image_.read(args, args.input<float>(0));
    const float* const dy = dy_image_.read(args, args.input<float>(1));
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      for (std::int64_t task = first; task < last; ++task) run_task(args, x, dy, piece, task);
    });
    if (has_bias_) {
      column_sums_.run(dy, args.output<float>(1), workspace_at<std::byte>(args, bias_));
    }
  }

 private:
  /// Some inputs and some outputs.
  struct Task {
    std::int64_t first_input;
    std::int64_t inputs;
    std::int64_t first_output;
    std::int64_t outputs;
  };

  /// Inputs of a block.
  std::int64_t width() const { return vectors_ * kTileLanes; }

  Task task_at(std::int64_t index) const {
    const std::int64_t input = index / parts_ * width();
    const std::int64_t part = index % parts_;
    const std::int64_t output = g_.outputs * part / parts_;
    return {input, std::min(width(), g_.inputs - input), output,
            g_.outputs * (part + 1) / parts_ - output};
  }

  void run_task(const KernelArgs& args, const float* all_x, const float* dy, std::int64_t piece,
                std::int64_t index) const {
    const Task task = task_at(index);
    float* const x = workspace_at<float>(args, x_) + piece * x_size_;
    const Sums sums = start_sums(args, piece, task);
    for (const Stretch& stretch : stretches_) {
      copy_block(all_x + stretch.x_first * g_.inputs + task.first_input, task, stretch.x_count, x);
      add_stretch(stretch, task, x, dy + stretch.y_first * g_.outputs + task.first_output, sums);
    }
    if (!is_direct()) write(sums, task, args.output<float>());
  }

  /// With one tap the sums stand where they belong.
  bool is_direct() const { return g_.taps() == 1; }

  /// All of them 0.
  Sums start_sums(const KernelArgs& args, std::int64_t piece, const Task& task) const {
    if (!is_direct()) {
      const std::int64_t row = vectors_of(task) * kTileLanes;
      float* const sums = workspace_at<float>(args, sums_) + piece * sums_size_;
      std::fill_n(sums, g_.taps() * task.outputs * row, 0.0F);
      return {sums, row, registers_of(task.inputs) * kRegisterLanes};
    }
    float* const dw = args.output<float>() + task.first_output * g_.inputs + task.first_input;
    for (std::int64_t i = 0; i < task.outputs; ++i) {
      std::fill_n(dw + i * g_.inputs, task.inputs, 0.0F);
    }
    return {dw, g_.inputs, task.inputs};
  }

  static std::int64_t vectors_of(const Task& task) {
    return (task.inputs + kTileLanes - 1) / kTileLanes;
  }

  /// Rows of the block's inputs, filled up with zeros to whole vectors.
  void copy_block(const float* from, const Task& task, std::int64_t positions, float* to) const {
    for (std::int64_t i = 0; i < positions; ++i, from += g_.inputs, to += width()) {
      std::copy_n(from, task.inputs, to);
      std::fill(to + task.inputs, to + vectors_of(task) * kTileLanes, 0.0F);
    }
  }

  void add_stretch(const Stretch& stretch, const Task& task, const float* x, const float* dy,
                   const Sums& sums) const {
    const AddTiles add = add_tiles_of(task.inputs);
    const std::int64_t chunks = (task.outputs + kMostOfChunk - 1) / kMostOfChunk;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t first = task.outputs * chunk / chunks;
      const std::int64_t count = task.outputs * (chunk + 1) / chunks - first;
      for (std::int64_t run = 0; run < stretch.meetings->runs(); ++run) {
        for (std::int64_t tap = 0; tap < g_.taps(); ++tap) {
          const std::span<const Meeting> meetings = stretch.meetings->of(run, tap);
          if (meetings.empty()) continue;
          float* const to = sums.numbers + (tap * task.outputs + first) * sums.step;
          add(meetings, x, dy + first, count, {to, sums.step, sums.width});
        }
      }
    }
  }

  /// Sums [tap][output][input] to dw [output][input][tap].
  void write(const Sums& sums, const Task& task, float* dw) const {
    const std::int64_t taps = g_.taps();
    for (std::int64_t output = 0; output < task.outputs; ++output) {
      float* const to = dw + ((task.first_output + output) * g_.inputs + task.first_input) * taps;
      const float* const from = sums.numbers + output * sums.step;
      for (std::int64_t i = 0; i < task.inputs; ++i) {
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          to[i * taps + tap] = from[tap * task.outputs * sums.step + i];
        }
      }
    }
  }

  WorkspaceLayout layout_;
  ConvGeometry g_;
  std::int64_t vectors_;  ///< of a block
  std::int64_t blocks_;
  std::int64_t parts_;  ///< of the outputs
  Pieces pieces_;
  std::vector<Stretch> stretches_;
  ColumnSums column_sums_;
  bool has_bias_;
  ConvImage x_image_;
  ConvImage dy_image_;
  std::int64_t x_size_ = 0;  ///< of a piece
  std::int64_t sums_size_ = 0;
  std::size_t x_ = 0;
  std::size_t sums_ = 0;
  std::size_t bias_ = 0;
};

/// Rows must be short, since some of them are copied; outputs must not be mostly padding, so that a
/// stretch has few of them, nor so many channels that offsets outgrow a Meeting.
bool fits_tiles(const ConvGeometry& g) {
  constexpr std::int64_t kMostPositions = 16384;
  constexpr std::int64_t kMostPadded = 4;
  constexpr std::int64_t kMostOutputs = 16384;
  const WindowAxis& rows = at(g.axes, 3 - g.rank);
  return row_count(g) > 0 && g.input_plane() > 0 && g.groups == 1 && g.inputs > 0 &&
         g.outputs <= kMostOutputs &&
         g.output_plane() <= checked_multiply(kMostPadded, g.input_plane()) &&
         checked_multiply(rows.extent() + rows.stride, g.input_plane() / rows.input) <=
             kMostPositions;
}

/// Blocks of inputs that are full or nearly so: from 48 inputs on tiles take 0.55 to 1.05 of the
/// time of oneDNN's convolutions (least for small images, where these multiply with padding), of
/// few inputs more; with registers of 8 numbers, which fewer fill, 0.78 to 0.98.
bool suits_tiles(const ConvGeometry& g) {
  constexpr std::int64_t kFewestInputs = 48;
  constexpr std::int64_t kFewestOfNarrow = 16;
  const bool is_narrow =
      kHasHalfRegisters && g.inputs >= kFewestOfNarrow && fill_registers(g.inputs);
  return g.taps() > 1 && (g.inputs >= kFewestInputs || is_narrow);
}

/// Without oneDNN: where a block is filled.
bool suits_all_tiles(const ConvGeometry& g) {
  constexpr std::int64_t kFewestInputs = 16;
  return g.inputs >= kFewestInputs;
}

}  // namespace

Kernel make_conv_weight_grad_by_tiles(KernelRequest& request, TilesUse use) {
  if (!takes_layouts({request.input(0), request.input(1)}, use)) return {};
  // Its lists take time for each image; larger batches are asked for by who looks for a limit.
  constexpr std::int64_t kMostImages = std::int64_t{1} << 20;
  if (request.shape(0)[0] > kMostImages) return {};
  const ConvGeometry geometry(request.node(), request.shape(0), request.output().shape,
                              request.shape(1));
  if (geometry.rank > 3 || !fits_tiles(geometry)) return {};
  if (use == TilesUse::where_fastest ? !suits_tiles(geometry) : !suits_all_tiles(geometry)) {
    return {};
  }
  return WeightGradByTiles(request, geometry);
}

}  // namespace graft
