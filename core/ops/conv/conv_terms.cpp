#include "core/ops/conv/conv_terms.h"

#include <algorithm>
#include <array>

namespace graft {
namespace {

/// An axis of the grid. Taps whose positions differ by whole strides are shifts of one another and
/// share a phase.
class GridAxis {
 public:
  GridAxis(const WindowAxis& axis, RowTaps taps) : axis_(axis), taps_(taps) {
    for (std::int64_t k = 0; k < this->taps(); ++k) {
      if (std::ranges::find(phases_, phase_of(k)) == phases_.end()) phases_.push_back(phase_of(k));
      most_shift_ = std::max(most_shift_, shift_of(k));
    }
  }

  std::int64_t extent() const { return axis_.output + most_shift_; }
  std::int64_t most_shift() const { return most_shift_; }
  std::int64_t outputs() const { return axis_.output; }
  const std::vector<std::int64_t>& phases() const { return phases_; }
  /// Taps that are told apart here.
  std::int64_t taps() const { return taps_ == RowTaps::as_columns ? 1 : axis_.kernel; }
  std::int64_t phase_of(std::int64_t tap) const {
    return taps_ == RowTaps::shifted ? tap * axis_.dilation % axis_.stride : tap * axis_.dilation;
  }
  std::int64_t shift_of(std::int64_t tap) const {
    return taps_ == RowTaps::shifted ? tap * axis_.dilation / axis_.stride : 0;
  }
  /// Positions of an image that places count.
  std::int64_t positions() const {
    if (taps_ != RowTaps::as_columns) return axis_.input;
    const std::int64_t met = (axis_.output - 1) * axis_.stride + axis_.kernel;
    return std::max(axis_.pad_begin + axis_.input, met);
  }
  /// Where a term meets x; -1 in padding.
  std::int64_t place(std::int64_t at, std::int64_t phase) const {
    if (taps_ == RowTaps::as_columns) return at * axis_.stride;
    const std::int64_t place = at * axis_.stride + phase - axis_.pad_begin;
    return place < axis_.input ? std::max<std::int64_t>(place, -1) : -1;
  }

 private:
  WindowAxis axis_;
  RowTaps taps_;
  std::vector<std::int64_t> phases_;
  std::int64_t most_shift_ = 0;
};

class Grid {
 public:
  Grid(const ConvGeometry& g, RowTaps row_taps)
      : axes_{GridAxis{g.axes[0], RowTaps::shifted}, GridAxis{g.axes[1], RowTaps::shifted},
              GridAxis{g.axes[2], row_taps}},
        kernel_{g.axes[0].kernel, g.axes[1].kernel, g.axes[2].kernel} {}

  const GridAxis& axis(int i) const { return axes_[i]; }

  std::int64_t index(std::int64_t d, std::int64_t h, std::int64_t w) const {
    return (d * axes_[1].extent() + h) * axes_[2].extent() + w;
  }
  /// Up to the last output.
  std::int64_t terms() const {
    return index(axes_[0].outputs() - 1, axes_[1].outputs() - 1, axes_[2].outputs() - 1) + 1;
  }

  std::int32_t output(std::int64_t term) const {
    const auto [d, h, w] = split(term);
    const bool is_one = d < axes_[0].outputs() && h < axes_[1].outputs() && w < axes_[2].outputs();
    if (!is_one) return -1;
    return static_cast<std::int32_t>((d * axes_[1].outputs() + h) * axes_[2].outputs() + w);
  }

  std::int32_t place(std::int64_t term, const std::array<std::int64_t, 3>& phases) const {
    const auto at = split(term);
    if (at[0] >= axes_[0].extent()) return -1;
    std::int64_t place = 0;
    for (int i = 0; i < 3; ++i) {
      const std::int64_t own = axes_[i].place(at[i], phases[i]);
      if (own < 0) return -1;
      place = place * axes_[i].positions() + own;
    }
    return static_cast<std::int32_t>(place);
  }

  std::vector<ConvTerms::Tap> taps(const std::array<std::int64_t, 3>& phases) const {
    std::vector<ConvTerms::Tap> taps;
    for (std::int64_t d = 0; d < axes_[0].taps(); ++d) {
      for (std::int64_t h = 0; h < axes_[1].taps(); ++h) {
        for (std::int64_t w = 0; w < axes_[2].taps(); ++w) {
          const bool is_one = axes_[0].phase_of(d) == phases[0] &&
                              axes_[1].phase_of(h) == phases[1] &&
                              axes_[2].phase_of(w) == phases[2];
          if (!is_one) continue;
          taps.push_back({(d * kernel_[1] + h) * kernel_[2] + w,
                          index(axes_[0].shift_of(d), axes_[1].shift_of(h), axes_[2].shift_of(w))});
        }
      }
    }
    return taps;
  }

 private:
  std::array<std::int64_t, 3> split(std::int64_t term) const {
    const std::int64_t row = term / axes_[2].extent();
    return {row / axes_[1].extent(), row % axes_[1].extent(), term % axes_[2].extent()};
  }

  std::array<GridAxis, 3> axes_;
  std::array<std::int64_t, 3> kernel_;
};

}  // namespace

bool ConvTerms::suit(const ConvGeometry& g, RowTaps row_taps) {
  constexpr std::int64_t kMostTaps = 1024;
  constexpr double kMostPlaces = 1 << 21;
  constexpr double kLeastUse = 0.6;
  if (g.taps() > kMostTaps) return false;
  if (row_taps == RowTaps::as_columns && g.axes[2].dilation != 1) return false;
  const Grid grid(g, row_taps);
  double terms = 1;
  double positions = 1;
  for (int i = 0; i < 3; ++i) {
    terms *= static_cast<double>(grid.axis(i).extent());
    positions *= static_cast<double>(grid.axis(i).positions());
  }
  if (terms > kMostPlaces || positions > kMostPlaces) return false;
  const std::int64_t chunks = (grid.terms() + kChunk - 1) / kChunk;
  return static_cast<double>(g.output_plane()) >= kLeastUse * static_cast<double>(chunks * kChunk);
}

ConvTerms::ConvTerms(const ConvGeometry& geometry, RowTaps row_taps) {
  const Grid grid(geometry, row_taps);
  chunks_ = (grid.terms() + kChunk - 1) / kChunk;
  last_terms_ = grid.terms() - (chunks_ - 1) * kChunk;
  row_positions_ = grid.axis(2).positions();
  for (std::int64_t i = 0; i < chunks_ * kChunk; ++i) outputs_.push_back(grid.output(i));
  const std::int64_t last_shift =
      grid.index(grid.axis(0).most_shift(), grid.axis(1).most_shift(), grid.axis(2).most_shift());
  places_ = chunks_ * kChunk + last_shift + 1;
  for (const std::int64_t w : grid.axis(2).phases()) {
    for (const std::int64_t d : grid.axis(0).phases()) {
      for (const std::int64_t h : grid.axis(1).phases()) {
        List list{{}, grid.taps({d, h, w})};
        for (std::int64_t i = 0; i < places_; ++i) list.places.push_back(grid.place(i, {d, h, w}));
        lists_.push_back(std::move(list));
      }
    }
  }
}

}  // namespace graft
