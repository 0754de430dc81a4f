#include "core/ops/conv/conv_lines.h"

#include <algorithm>

namespace graft {
namespace {

/// An axis as targets see it.
class View {
 public:
  View(const WindowAxis& axis, ConvDirection direction)
      : axis_(axis), is_forward_(direction == ConvDirection::forward) {}

  std::int64_t targets() const { return is_forward_ ? axis_.output : axis_.input; }
  std::int64_t sources() const { return is_forward_ ? axis_.input : axis_.output; }
  /// Targets so far apart meet by the same taps, if none meets padding.
  std::int64_t step() const { return is_forward_ ? 1 : axis_.stride; }
  std::int64_t source_step() const { return is_forward_ ? axis_.stride : 1; }
  /// The source that `target` meets by that tap; -1 if none.
  std::int64_t source(std::int64_t target, std::int64_t tap) const {
    if (!is_forward_) return axis_.output_of_tap(target, tap);
    const std::int64_t at = axis_.position(target, tap);
    return at >= 0 && at < axis_.input ? at : -1;
  }

 private:
  const WindowAxis& axis_;
  bool is_forward_;
};

std::vector<ConvRun> find_runs(const View& view, std::int64_t taps) {
  std::vector<ConvRun> runs;
  const auto is_same = [](const MetTap& a, const MetTap& b) { return a.tap == b.tap; };
  for (std::int64_t phase = 0; phase < std::min(view.step(), view.targets()); ++phase) {
    for (std::int64_t target = phase; target < view.targets(); target += view.step()) {
      std::vector<MetTap> met;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t source = view.source(target, tap);
        if (source >= 0) met.push_back({tap, source});
      }
      if (target != phase && std::ranges::equal(runs.back().taps, met, is_same)) {
        ++runs.back().count;
      } else {
        runs.push_back({target, 1, std::move(met)});
      }
    }
  }
  return runs;
}

}  // namespace

bool ConvLines::fits(const ConvGeometry& geometry) {
  constexpr std::int64_t kMostTaps = 64;  // along an axis
  constexpr std::int64_t kMostWidth = 65536;
  constexpr std::int64_t kMostMeetings = std::int64_t{1} << 20;
  if (geometry.rank > 3) return false;
  const auto& [depth, height, width] = geometry.axes;
  if (depth.kernel > kMostTaps || height.kernel > kMostTaps || width.kernel > kMostTaps) {
    return false;
  }
  if (width.input > kMostWidth || width.output > kMostWidth) return false;
  const std::int64_t lines = std::max(checked_multiply(depth.input, height.input),
                                      checked_multiply(depth.output, height.output));
  return lines <= kMostMeetings / (depth.kernel * height.kernel);
}

ConvLines::ConvLines(const ConvGeometry& geometry, ConvDirection direction) {
  const View depth(geometry.axes[0], direction);
  const View height(geometry.axes[1], direction);
  const View width(geometry.axes[2], direction);
  target_lines = depth.targets() * height.targets();
  target_width = width.targets();
  source_width = width.sources();
  source_plane = depth.sources() * height.sources() * source_width;
  const std::int64_t height_taps = geometry.axes[1].kernel;
  line_taps = geometry.axes[0].kernel * height_taps;
  width_taps = geometry.axes[2].kernel;
  step = width.step();
  source_step = width.source_step();
  runs = find_runs(width, width_taps);
  source_lines.reserve(static_cast<std::size_t>(target_lines * line_taps));
  for (std::int64_t line = 0; line < target_lines; ++line) {
    for (std::int64_t tap = 0; tap < line_taps; ++tap) {
      const std::int64_t d = depth.source(line / height.targets(), tap / height_taps);
      const std::int64_t h = height.source(line % height.targets(), tap % height_taps);
      source_lines.push_back(d < 0 || h < 0 ? -1 : d * height.sources() + h);
    }
  }
}

}  // namespace graft
