// Depthwise convolutions, whose channels each have a weight of their own, and their gradients, on
// f32 rows of channels: for builds without oneDNN. Vectors hold neighbouring channels. Sums of some
// neighbours along the width stand in registers while all taps pass by, so that each number of the
// weight is read once for all of them. Start at ChannelwiseSums::add_run.
#include <algorithm>
#include <optional>

#include "core/ops/conv/conv_clamp.h"
#include "core/ops/conv/conv_image.h"
#include "core/ops/conv/conv_lines.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/prefetch.h"
#include "core/ops/kernels/register_tile.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Calls body.operator()<lanes, vectors>(channel) for strips of channels, of whole cache lines but
/// for the last ones.
template <class Body>
void for_each_strip(std::int64_t channels, Body&& body) {
  constexpr int kLanes = kRegisterLanes;
  std::int64_t c = 0;
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) body.template operator()<kLanes, 2>(c);
  for (; c + kLanes <= channels; c += kLanes) body.template operator()<kLanes, 1>(c);
  if constexpr (kLanes > 8) {
    for (; c + 8 <= channels; c += 8) body.template operator()<8, 1>(c);
  }
  for_each_lanes(channels - c,
                 [&]<int lanes>(std::int64_t i) { body.template operator()<lanes, 1>(c + i); });
}

/// Multiply-adds that make a thread worth waking.
constexpr double kWorthAThread = 65536;

/// Multiply-adds of so many lines, with those that meet padding.
double work_of(const ConvLines& lines, std::int64_t count, const ConvGeometry& g) {
  return static_cast<double>(count) * static_cast<double>(lines.target_width) *
         static_cast<double>(g.taps()) * static_cast<double>(g.groups);
}

/// Sums over taps: a convolution, or the gradient of its input, whose taps only meet otherwise.
class ChannelwiseSums {
 public:
  ChannelwiseSums(KernelRequest& request, const ConvGeometry& g, ConvDirection direction)
      : lines_(g, direction),
        images_(g.batch),
        channels_(g.groups),
        taps_(g.taps()),
        grain_(1 + static_cast<std::int64_t>(kWorthAThread / (work_of(lines_, 1, g) + 1))),
        is_forward_(direction == ConvDirection::forward),
        source_(request.input(0), Layout::channels_last, layout_),
        addend_(is_forward_ ? TensorSpec{} : input_or_none(request, 2), Layout::channels_last,
                layout_),
        target_(request.output(), Layout::channels_last, layout_) {
    if (request.node().is("ConvClamp", kInternalDomain)) clamp_.emplace(request.attributes());
    weight_ = layout_.reserve<float>(taps_ * channels_);
    request.need_workspace(layout_.bytes());
  }

  void operator()(const KernelArgs& args) const {
    const float* const weight = by_taps(args);
    const float* const source = source_.read(args, args.input<float>(0));
    const float* const given =
        is_forward_ ? args.input<float>(2) : addend_.read(args, args.input<float>(2));
    float* const target = target_.start(args, args.output<float>());
    parallel_for(images_ * lines_.target_lines, grain_, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t line = first; line < last; ++line) {
        for_each_strip(channels_, [&]<int lanes, int vectors>(std::int64_t c) {
          add_line<lanes, vectors>(line, weight + c, source + c,
                                   given == nullptr ? nullptr : given + c, target + c);
        });
      }
    });
    target_.finish(args, args.output<float>());
  }

 private:
  /// [channel][tap] as [tap][channel].
  const float* by_taps(const KernelArgs& args) const {
    const auto* const from = args.input<float>(1);
    auto* const to = workspace_at<float>(args, weight_);
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      for (std::int64_t c = 0; c < channels_; ++c) to[tap * channels_ + c] = from[c * taps_ + tap];
    }
    return to;
  }

  template <int lanes, int vectors>
  void add_line(std::int64_t line, const float* weight, const float* source, const float* given,
                float* target) const {
    const std::int64_t image = line / lines_.target_lines;
    const std::int64_t start = line * lines_.target_width * channels_;
    source += image * lines_.source_plane * channels_;
    for (const ConvRun& run : lines_.runs) {
      for_each_row_tile<4>(run.count, [&]<int targets>(std::int64_t first) {
        const std::int64_t at = start + (run.first + first * lines_.step) * channels_;
        const float* const begin = given == nullptr ? nullptr : given + (is_forward_ ? 0 : at);
        add_run<lanes, vectors, targets>(line % lines_.target_lines, run, first, weight, source,
                                         begin, target + at);
      });
    }
  }

  /// `targets` of a run from number `first` on.
  template <int lanes, int vectors, int targets>
  void add_run(std::int64_t line, const ConvRun& run, std::int64_t first, const float* weight,
               const float* source, const float* begin, float* target) const {
    using V = Lanes<lanes>;
    const std::int64_t step = lines_.step * channels_;
    const std::int64_t source_step = lines_.source_step * channels_;
    V sums[targets][vectors] = {};
    if (begin != nullptr) {
      const std::int64_t begin_step = is_forward_ ? 0 : step;
      unroll<targets>([&]<int t>() {
        unroll<vectors>(
            [&]<int v>() { sums[t][v] = load<lanes>(begin + t * begin_step + v * lanes); });
      });
    }
    for (std::int64_t line_tap = 0; line_tap < lines_.line_taps; ++line_tap) {
      const std::int64_t source_line = lines_.source_line(line, line_tap);
      if (source_line < 0) continue;
      const float* const from_line =
          source + source_line * lines_.source_width * channels_ + first * source_step;
      const float* const weight_line = weight + line_tap * lines_.width_taps * channels_;
      for (const MetTap& met : run.taps) {
        const float* const from = from_line + met.source * channels_;
        V factor[vectors];
        unroll<vectors>([&]<int v>() {
          factor[v] = load<lanes>(weight_line + met.tap * channels_ + v * lanes);
        });
        unroll<targets>([&]<int t>() {
          unroll<vectors>([&]<int v>() {
            sums[t][v] += load<lanes>(from + t * source_step + v * lanes) * factor[v];
          });
        });
      }
    }
    unroll<targets>([&]<int t>() {
      unroll<vectors>([&]<int v>() {
        store(target + t * step + v * lanes, clamp_ ? clamped(sums[t][v], *clamp_) : sums[t][v]);
      });
    });
  }

  WorkspaceLayout layout_;
  ConvLines lines_;
  std::int64_t images_;
  std::int64_t channels_;
  std::int64_t taps_;
  std::int64_t grain_;  ///< lines
  bool is_forward_;
  ConvImage source_;
  ConvImage addend_;
  ConvImage target_;
  std::optional<ConvClamp> clamp_;
  std::size_t weight_ = 0;
};

/// Lines are cut into chunks by shape alone; each sums its products into a part of its own, and the
/// parts are added in order, so that the bits do not depend on the threads. Some products are
/// summed in f32 registers, the sums in f64.
class ChannelwiseWeightGrad {
 public:
  ChannelwiseWeightGrad(KernelRequest& request, const ConvGeometry& g)
      : lines_(g, ConvDirection::forward),
        line_count_(g.batch * lines_.target_lines),
        channels_(g.groups),
        taps_(g.taps()),
        chunks_(chunks_of(work_of(lines_, line_count_, g))),
        column_sums_(row_count(g), g.groups),
        has_bias_(request.has_output(1)),
        x_(request.input(0), Layout::channels_last, layout_),
        dy_(request.input(1), Layout::channels_last, layout_) {
    sums_ = layout_.reserve<double>(chunks_ * taps_ * channels_);
    bias_ = layout_.reserve_bytes(has_bias_ ? column_sums_.workspace_bytes() : 0);
    request.need_workspace(layout_.bytes());
  }

  void operator()(const KernelArgs& args) const {
    const float* const x = x_.read(args, args.input<float>(0));
    const float* const dy = dy_.read(args, args.input<float>(1));
    auto* const sums = workspace_at<double>(args, sums_);
    parallel_for(chunks_, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t chunk = first; chunk < last; ++chunk) {
        add_chunk(line_count_ * chunk / chunks_, line_count_ * (chunk + 1) / chunks_, x, dy,
                  sums + chunk * taps_ * channels_);
      }
    });
    write(sums, args.output<float>());
    if (has_bias_) {
      column_sums_.run(dy, args.output<float>(1), workspace_at<std::byte>(args, bias_));
    }
  }

 private:
  static std::int64_t chunks_of(double work) {
    constexpr double kMostChunks = 32;
    return static_cast<std::int64_t>(std::clamp(work / (2 * kWorthAThread), 1.0, kMostChunks));
  }

  void add_chunk(std::int64_t first, std::int64_t last, const float* x, const float* dy,
                 double* sums) const {
    constexpr std::int64_t kLongestSum = 256;
    const std::int64_t lines =
        std::max<std::int64_t>(1, kLongestSum / std::max<std::int64_t>(1, lines_.target_width));
    std::fill_n(sums, taps_ * channels_, 0.0);
    for (; first < last; first += lines) {
      const Span block{first, std::min(last, first + lines)};
      for_each_strip(channels_, [&]<int lanes, int vectors>(std::int64_t c) {
        add_block<lanes, vectors>(block, x + c, dy + c, sums + c);
      });
    }
  }

  template <int lanes, int vectors>
  void add_block(const Span& block, const float* x, const float* dy, double* sums) const {
    for (std::int64_t line_tap = 0; line_tap < lines_.line_taps; ++line_tap) {
      for (const ConvRun& run : lines_.runs) {
        for_each_row_tile<5>(std::ssize(run.taps), [&]<int taps>(std::int64_t first) {
          const MetTap* const met = run.taps.data() + first;
          add_taps<lanes, vectors, taps>(block, line_tap, run, met, x, dy, sums);
        });
      }
    }
  }

  /// Of `taps` neighbouring taps of one line of the weight, along a run in each line of the block.
  /// Strips of channels are an order that hardware foresees badly: each asks for the next.
  template <int lanes, int vectors, int taps>
  void add_taps(const Span& block, std::int64_t line_tap, const ConvRun& run, const MetTap* met,
                const float* x, const float* dy, double* sums) const {
    using V = Lanes<lanes>;
    const std::int64_t x_step = lines_.source_step * channels_;
    V products[taps][vectors] = {};
    for (std::int64_t line = block.first; line < block.last; ++line) {
      const std::int64_t image = line / lines_.target_lines;
      const std::int64_t x_line = lines_.source_line(line % lines_.target_lines, line_tap);
      if (x_line < 0) continue;
      const std::int64_t x_start = image * lines_.source_plane + x_line * lines_.source_width;
      const float* from[taps];
      unroll<taps>([&]<int t>() { from[t] = x + (x_start + met[t].source) * channels_; });
      const float* slope = dy + (line * lines_.target_width + run.first) * channels_;
      for (std::int64_t i = 0; i < run.count; ++i, slope += channels_) {
        V factor[vectors];
        unroll<vectors>([&]<int v>() {
          factor[v] = load<lanes>(slope + v * lanes);
          prefetch(slope + (vectors + v) * lanes);
          prefetch(from[0] + i * x_step + (vectors + v) * lanes);
        });
        unroll<taps>([&]<int t>() {
          unroll<vectors>([&]<int v>() {
            products[t][v] += load<lanes>(from[t] + i * x_step + v * lanes) * factor[v];
          });
        });
      }
    }
    unroll<taps>([&]<int t>() {
      double* const to = sums + (line_tap * lines_.width_taps + met[t].tap) * channels_;
      unroll<vectors>([&]<int v>() { add_to<lanes>(to + v * lanes, products[t][v]); });
    });
  }

  /// [chunk][tap][channel] to [channel][tap].
  void write(const double* sums, float* dw) const {
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        double sum = 0;
        for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
          sum += sums[(chunk * taps_ + tap) * channels_ + c];
        }
        dw[c * taps_ + tap] = static_cast<float>(sum);
      }
    }
  }

  WorkspaceLayout layout_;
  ConvLines lines_;
  std::int64_t line_count_;  ///< of all images
  std::int64_t channels_;
  std::int64_t taps_;
  std::int64_t chunks_;
  ColumnSums column_sums_;
  bool has_bias_;
  ConvImage x_;
  ConvImage dy_;
  std::size_t sums_ = 0;
  std::size_t bias_ = 0;
};

/// Images in row-major order alone are copied: that takes less than the plain kernel.
bool suits(const KernelRequest& request, const ConvGeometry& g) {
  return request.dtype() == DType::f32 && g.inputs == 1 && g.outputs == 1 && g.groups > 1 &&
         ConvLines::fits(g);
}

Kernel make_conv(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.shape(1), request.output().shape);
  if (!suits(request, g)) return {};
  return ChannelwiseSums(request, g, ConvDirection::forward);
}

Kernel make_conv_input_grad(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.output().shape, request.shape(1), request.shape(0));
  if (!suits(request, g)) return {};
  return ChannelwiseSums(request, g, ConvDirection::input_grad);
}

Kernel make_conv_weight_grad(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.output().shape, request.shape(1));
  if (!suits(request, g)) return {};
  return ChannelwiseWeightGrad(request, g);
}

}  // namespace

void register_conv_channelwise_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add(
        {.op = op, .domain = domain, .name = "channelwise", .make = make, .knows_layouts = true});
  };
  add("Conv", "", make_conv);
  add("ConvClamp", kInternalDomain, make_conv);
  add("ConvInputGrad", kInternalDomain, make_conv_input_grad);
  add("ConvWeightGrad", kInternalDomain, make_conv_weight_grad);
}

}  // namespace graft
