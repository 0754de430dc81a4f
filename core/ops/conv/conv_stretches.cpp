#include <algorithm>

#include "core/ops/conv/conv_stretches.h"

namespace graft {
namespace {

/// Rows [first, last) of `images` images.
struct Rows {
  std::int64_t images;
  std::int64_t first;
  std::int64_t last;
};

class Cutter {
 public:
  Cutter(const ConvGeometry& geometry, const StretchSteps& steps)
      : g_(geometry), steps_(steps), row_axis_(3 - geometry.rank) {}

  std::vector<Stretch> cut(std::int64_t positions) {
    const std::int64_t plane = g_.input_plane();
    if (plane > positions) {
      const std::int64_t rows = even_share(axis().output, rows_for(positions));
      for (std::int64_t image = 0; image < g_.batch; ++image) {
        for (std::int64_t row = 0; row < axis().output; row += rows) {
          add(image, {1, row, std::min(row + rows, axis().output)});
        }
      }
    } else {
      const std::int64_t images = even_share(g_.batch, positions / plane);
      for (std::int64_t image = 0; image < g_.batch; image += images) {
        add(image, {std::min(images, g_.batch - image), 0, axis().output});
      }
    }
    return std::move(stretches_);
  }

 private:
  const WindowAxis& axis() const { return g_.axes[static_cast<std::size_t>(row_axis_)]; }
  /// Positions of a row.
  std::int64_t x_row() const { return g_.input_plane() / axis().input; }
  std::int64_t y_row() const { return g_.output_plane() / axis().output; }

  /// At most `most`, so that the last share is about as large as the others.
  static std::int64_t even_share(std::int64_t count, std::int64_t most) {
    const std::int64_t shares = (count + most - 1) / most;
    return (count + shares - 1) / shares;
  }

  std::int64_t rows_for(std::int64_t positions) const {
    const std::int64_t input_rows = positions / x_row() - (axis().extent() - 1);
    return std::clamp<std::int64_t>(input_rows / axis().stride, 1, axis().output);
  }

  /// The input rows that these outputs meet.
  Span input_rows(const Rows& rows) const {
    const std::int64_t first = std::max<std::int64_t>(0, axis().position(rows.first, 0));
    const std::int64_t end = axis().position(rows.last - 1, axis().kernel - 1) + 1;
    const std::int64_t last = std::clamp<std::int64_t>(end, 0, axis().input);
    return {std::min(first, last), last};
  }

  /// No row meets padding.
  bool is_inner(const Rows& rows) const {
    return rows.images == 1 && axis().taps_of_output(rows.first).count() == axis().kernel &&
           axis().taps_of_output(rows.last - 1).count() == axis().kernel;
  }

  void add(std::int64_t image, const Rows& rows) {
    const Span met = input_rows(rows);
    stretches_.push_back({.x_first = image * g_.input_plane() + met.first * x_row(),
                          .x_count = ((rows.images - 1) * axis().input + met.count()) * x_row(),
                          .y_first = image * g_.output_plane() + rows.first * y_row(),
                          .meetings = meetings_of(rows, met.first)});
  }

  std::shared_ptr<const Meetings> meetings_of(const Rows& rows, std::int64_t x_first) {
    for (const auto& [other, meetings] : known_) {
      const bool is_same = other.images == rows.images && other.first == rows.first;
      const bool has_as_many = other.last - other.first == rows.last - rows.first;
      if (has_as_many && (is_same || (is_inner(other) && is_inner(rows)))) return meetings;
    }
    known_.emplace_back(rows, make_meetings(rows, x_first));
    return known_.back().second;
  }

  std::shared_ptr<const Meetings> make_meetings(const Rows& rows, std::int64_t x_first) const {
    auto meetings = std::make_shared<Meetings>(steps_.run);
    const auto& [depth, height, width] = g_.axes;
    for (std::int64_t kd = 0; kd < depth.kernel; ++kd) {
      for (std::int64_t kh = 0; kh < height.kernel; ++kh) {
        for (std::int64_t kw = 0; kw < width.kernel; ++kw) {
          add_tap(rows, x_first, {kd, kh, kw}, *meetings);
        }
      }
    }
    meetings->finish(g_.taps());
    return meetings;
  }

  void add_tap(const Rows& rows, std::int64_t x_first, const std::array<std::int64_t, 3>& tap,
               Meetings& meetings) const {
    meetings.start_tap();
    std::array<Span, 3> outputs{};
    for (std::size_t i = 0; i < 3; ++i) outputs[i] = {0, g_.axes[i].output};
    outputs[static_cast<std::size_t>(row_axis_)] = {rows.first, rows.last};
    std::int64_t y = 0;
    for (std::int64_t image = 0; image < rows.images; ++image) {
      const std::int64_t start = image * g_.input_plane() - x_first * x_row();
      for (std::int64_t d = outputs[0].first; d < outputs[0].last; ++d) {
        for (std::int64_t h = outputs[1].first; h < outputs[1].last; ++h) {
          for (std::int64_t w = outputs[2].first; w < outputs[2].last; ++w, y += steps_.y) {
            const std::int64_t x = met_position({d, h, w}, tap);
            const Meeting meeting{static_cast<std::int32_t>((start + x) * steps_.x),
                                  static_cast<std::int32_t>(y)};
            meetings.add_output(x < 0 ? nullptr : &meeting);
          }
        }
      }
    }
  }

  /// Within the image; -1 in padding.
  std::int64_t met_position(const std::array<std::int64_t, 3>& output,
                            const std::array<std::int64_t, 3>& tap) const {
    std::int64_t position = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const WindowAxis& axis = g_.axes[i];
      const std::int64_t at = axis.position(output[i], tap[i]);
      if (at < 0 || at >= axis.input) return -1;
      position = position * axis.input + at;
    }
    return position;
  }

  const ConvGeometry& g_;
  StretchSteps steps_;
  int row_axis_;
  std::vector<Stretch> stretches_;
  std::vector<std::pair<Rows, std::shared_ptr<const Meetings>>> known_;
};

}  // namespace

void Meetings::add_output(const Meeting* meeting) {
  if (output_ % run_ == 0) starts_.push_back(list_.size());
  ++output_;
  if (meeting != nullptr) list_.push_back(*meeting);
}

void Meetings::finish(std::int64_t taps) {
  runs_ = static_cast<std::int64_t>(starts_.size()) / taps;
  starts_.push_back(list_.size());
}

std::span<const Meeting> Meetings::of(std::int64_t run, std::int64_t tap) const {
  const auto at = static_cast<std::size_t>(tap * runs_ + run);
  return std::span(list_).subspan(starts_[at], starts_[at + 1] - starts_[at]);
}

std::vector<Stretch> cut_into_stretches(const ConvGeometry& geometry, std::int64_t positions,
                                        const StretchSteps& steps) {
  return Cutter(geometry, steps).cut(positions);
}

}  // namespace graft
