#include <algorithm>
#include <map>

#include "core/ops/conv/conv_patterns.h"

namespace graft {
namespace {

using Position = std::array<std::int64_t, 3>;

/// The axis as targets see it.
struct View {
  View(const WindowAxis& window, ConvDirection direction)
      : axis(window), is_forward(direction == ConvDirection::forward) {}

  std::int64_t targets() const { return is_forward ? axis.output : axis.input; }
  std::int64_t sources() const { return is_forward ? axis.input : axis.output; }

  /// The source that `target` meets by that tap; -1 if none.
  std::int64_t source(std::int64_t target, std::int64_t tap) const {
    if (is_forward) {
      const std::int64_t at = axis.position(target, tap);
      return at < axis.input ? at : -1;
    }
    const std::int64_t strides = target + axis.pad_begin - tap * axis.dilation;
    const bool is_met = strides >= 0 && strides % axis.stride == 0;
    return is_met && strides / axis.stride < axis.output ? strides / axis.stride : -1;
  }

  const WindowAxis& axis;
  bool is_forward;
};

class Finder {
 public:
  Finder(const ConvGeometry& geometry, ConvDirection direction)
      : views_{View(geometry.axes[0], direction), View(geometry.axes[1], direction),
               View(geometry.axes[2], direction)},
        is_forward_(direction == ConvDirection::forward),
        last_tap_(geometry.taps() - 1),
        source_channels_(is_forward_ ? geometry.inputs : geometry.outputs),
        target_channels_(is_forward_ ? geometry.outputs : geometry.inputs) {}

  std::vector<ConvPattern> find(std::int64_t images) {
    visit(views_[0].targets(), views_[1].targets(), views_[2].targets(),
          [&](const Position& target) { add(target); });
    std::vector<ConvPattern> patterns;
    for (auto& [taps, pattern] : patterns_) {
      pattern.taps = taps;
      repeat(pattern, images);
      patterns.push_back(std::move(pattern));
    }
    return patterns;
  }

 private:
  template <class Body>
  static void visit(std::int64_t depth, std::int64_t height, std::int64_t width, Body&& body) {
    for (std::int64_t d = 0; d < depth; ++d) {
      for (std::int64_t h = 0; h < height; ++h) {
        for (std::int64_t w = 0; w < width; ++w) body(Position{d, h, w});
      }
    }
  }

  void add(const Position& target) {
    std::vector<std::pair<std::int64_t, std::int64_t>> met;  // source, tap
    std::int64_t number = 0;
    visit(views_[0].axis.kernel, views_[1].axis.kernel, views_[2].axis.kernel,
          [&](const Position& tap) {
            const std::int64_t source = source_of(target, tap) * source_channels_;
            if (source >= 0) met.emplace_back(source, is_forward_ ? number : last_tap_ - number);
            ++number;
          });
    std::ranges::sort(met);
    const std::int64_t first = met.empty() ? 0 : met.front().first;
    std::vector<TapShift> taps;
    for (const auto& [source, tap] : met) taps.push_back({tap, source - first});
    ConvPattern& pattern = patterns_[std::move(taps)];
    pattern.places.push_back({static_cast<std::int32_t>(first), next_target_});
    next_target_ += static_cast<std::int32_t>(target_channels_);
  }

  /// Within the image; negative if there is none.
  std::int64_t source_of(const Position& target, const Position& tap) const {
    std::int64_t position = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t at = views_[i].source(target[i], tap[i]);
      if (at < 0) return -1;
      position = position * views_[i].sources() + at;
    }
    return position;
  }

  void repeat(ConvPattern& pattern, std::int64_t images) const {
    std::int64_t plane = source_channels_;
    for (const View& view : views_) plane *= view.sources();
    const std::size_t count = pattern.places.size();
    for (std::int64_t image = 1; image < images; ++image) {
      for (std::size_t i = 0; i < count; ++i) {
        const ConvPlace& place = pattern.places[i];
        pattern.places.push_back({place.source + static_cast<std::int32_t>(image * plane),
                                  place.target + static_cast<std::int32_t>(image) * next_target_});
      }
    }
  }

  std::array<View, 3> views_;
  bool is_forward_;
  std::int64_t last_tap_;
  std::int64_t source_channels_;
  std::int64_t target_channels_;
  std::int32_t next_target_ = 0;  ///< in the end: elements of an image's targets
  std::map<std::vector<TapShift>, ConvPattern> patterns_;
};

}  // namespace

std::vector<ConvPattern> find_patterns(const ConvGeometry& geometry, ConvDirection direction,
                                       std::int64_t images) {
  return Finder(geometry, direction).find(images);
}

std::vector<std::int32_t> positions_met(const ConvGeometry& g) {
  const auto& [depth, height, width] = g.axes;
  std::vector<std::int32_t> met;
  met.reserve(static_cast<std::size_t>(g.taps() * g.output_plane()));
  for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
    const std::int64_t kw = tap % width.kernel;
    const std::int64_t kh = tap / width.kernel % height.kernel;
    const std::int64_t kd = tap / width.kernel / height.kernel;
    for (std::int64_t i = 0; i < g.output_plane(); ++i) {
      const std::int64_t w = width.position(i % width.output, kw);
      const std::int64_t h = height.position(i / width.output % height.output, kh);
      const std::int64_t d = depth.position(i / width.output / height.output, kd);
      const bool is_inside =
          w >= 0 && w < width.input && h >= 0 && h < height.input && d >= 0 && d < depth.input;
      const std::int64_t at = (d * height.input + h) * width.input + w;
      met.push_back(is_inside ? static_cast<std::int32_t>(at) : -1);
    }
  }
  return met;
}

}  // namespace graft
