#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/pool/pool_geometry.h"

namespace graft {

/// Channels that are worked on at a time, few enough for the stack.
inline constexpr std::int64_t kPoolChannels = 64;

/// Images in channels-last order, and how a pooling walks over them.
struct PoolImages {
  PoolImages(const KernelRequest& request, const Shape& x)
      : batch(x[0]), channels(x[1]), axes(PoolGeometry(request.node(), x).axes) {
    const bool has_positions = input_positions() != 0 || output_positions() != 0;
    if (channels == 0 || !has_positions) batch = 0;  // nothing to walk
  }

  std::int64_t input_positions() const { return axes[0].input * axes[1].input * axes[2].input; }
  std::int64_t output_positions() const { return axes[0].output * axes[1].output * axes[2].output; }

  /// Calls body(y, taps) for outputs of rows [first, last) of depth x height, y the position of the
  /// output in its image.
  template <class Body>
  void for_each_output(std::int64_t first, std::int64_t last, Body&& body) const {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t d = row / axes[1].output;
      const std::int64_t h = row % axes[1].output;
      for (std::int64_t w = 0; w < axes[2].output; ++w) {
        body(row * axes[2].output + w, std::array<std::int64_t, 3>{d, h, w});
      }
    }
  }
  std::int64_t rows() const { return axes[0].output * axes[1].output; }

  /// Calls body(x) with the position in the image of each tap, in row-major order.
  template <class Body>
  void for_each_tap(const std::array<std::int64_t, 3>& output, Body&& body) const {
    const auto& [depth, height, width] = axes;
    const Span ds = depth.taps_of_output(output[0]);
    const Span hs = height.taps_of_output(output[1]);
    const Span ws = width.taps_of_output(output[2]);
    for (std::int64_t kd = ds.first; kd < ds.last; ++kd) {
      for (std::int64_t kh = hs.first; kh < hs.last; ++kh) {
        const std::int64_t row =
            depth.position(output[0], kd) * height.input + height.position(output[1], kh);
        for (std::int64_t kw = ws.first; kw < ws.last; ++kw) {
          body(row * width.input + width.position(output[2], kw));
        }
      }
    }
  }

  /// Calls body(image, first row, last row) over all threads: rows of outputs are independent.
  template <class Body>
  void for_each_row(Body&& body) const {
    const std::int64_t work = std::max<std::int64_t>(1, axes[2].output * channels);
    parallel_for(batch * rows(), kElementwiseGrain / work + 1,
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t at = first; at < last; ++at) {
                     body(at / rows(), at % rows(), at % rows() + 1);
                   }
                 });
  }

  /// Calls body(image) over all threads.
  template <class Body>
  void for_each_image(Body&& body) const {
    parallel_for(batch, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t image = first; image < last; ++image) body(image);
    });
  }

  /// Calls body(image, first channel, count) over all threads: windows that overlap share inputs,
  /// channels do not.
  template <class Body>
  void for_each_channel_block(Body&& body) const {
    const std::int64_t blocks = (channels + kPoolChannels - 1) / kPoolChannels;
    parallel_for(batch * blocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t at = first; at < last; ++at) {
        const std::int64_t channel = at % blocks * kPoolChannels;
        body(at / blocks, channel, std::min(kPoolChannels, channels - channel));
      }
    });
  }

  std::int64_t batch;
  std::int64_t channels;
  WindowAxes axes;
};

/// Where the taps of one output lie, as offsets of elements; windows beyond `kMost` taps are left
/// to the row-major kernels.
struct PoolTaps {
  static constexpr std::int64_t kMost = 256;
  std::int64_t count = 0;
  std::array<std::int64_t, kMost> offsets;

  PoolTaps() : offsets{} {}
  PoolTaps(const PoolImages& g, const std::array<std::int64_t, 3>& output) {
    g.for_each_tap(output, [&](std::int64_t tap) {
      offsets[static_cast<std::size_t>(count++)] = tap * g.channels;
    });
  }
  std::int64_t operator[](std::int64_t i) const { return offsets[static_cast<std::size_t>(i)]; }
};

/// The windows of a max pooling. The taps of all that lie within the image are the same, but for
/// where the window starts; they are found once, when the plan is made.
class PoolWindows {
 public:
  explicit PoolWindows(const PoolImages& g) : channels_(g.channels), axes_(g.axes) {
    std::array<std::int64_t, 3> first{};
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const WindowAxis& axis = axes_[i];
      inner_[i].first = axis.outputs_of_tap(0).first;
      inner_[i].last = axis.outputs_of_tap(axis.kernel - 1).last;
      first[i] = inner_[i].first;
      are_disjoint = are_disjoint && axis.stride >= axis.extent();
      cover_all = cover_all && axis.stride == axis.kernel && axis.pad_begin == 0 &&
                  axis.input == axis.output * axis.kernel;
    }
    for (const Span& outputs : inner_) {
      if (outputs.count() == 0) return;
    }
    taps_ = PoolTaps(g, first);
    const std::int64_t start = start_of(first);
    for (std::int64_t& offset : taps_.offsets) offset -= start;
  }

  /// Calls body(taps, start, w, count) for runs of outputs, w the first in the row: tap i of output
  /// w + k is the element start + k * step() + taps[i] of the image.
  template <class Body>
  void visit_row(const PoolImages& g, std::int64_t row, Body&& body) const {
    std::array<std::int64_t, 3> output{row / axes_[1].output, row % axes_[1].output, 0};
    std::int64_t& w = output[2];
    const auto visit_border = [&](std::int64_t last) {
      for (; w < last; ++w) body(PoolTaps(g, output), std::int64_t{0}, w, std::int64_t{1});
    };
    if (is_inner(0, output) && is_inner(1, output) && inner_[2].count() > 0) {
      visit_border(inner_[2].first);
      body(taps_, start_of(output), w, inner_[2].count());
      w = inner_[2].last;
    }
    visit_border(axes_[2].output);
  }
  /// Elements between the windows of neighbouring outputs of a row.
  std::int64_t step() const { return axes_[2].stride * channels_; }

  bool are_disjoint = true;
  /// Every element of the image is in one.
  bool cover_all = true;

 private:
  bool is_inner(std::size_t axis, const std::array<std::int64_t, 3>& output) const {
    return output[axis] >= inner_[axis].first && output[axis] < inner_[axis].last;
  }
  std::int64_t start_of(const std::array<std::int64_t, 3>& output) const {
    const auto& [depth, height, width] = axes_;
    const std::int64_t row =
        depth.position(output[0], 0) * height.input + height.position(output[1], 0);
    return (row * width.input + width.position(output[2], 0)) * channels_;
  }

  std::int64_t channels_;
  WindowAxes axes_;
  std::array<Span, 3> inner_{};  // outputs whose window lies within the image
  PoolTaps taps_;
};

inline bool has_few_taps(const PoolImages& g) {
  const std::int64_t plane = g.axes[1].kernel * g.axes[2].kernel;  // the product of three overflows
  return plane <= PoolTaps::kMost && g.axes[0].kernel * plane <= PoolTaps::kMost;
}

}  // namespace graft
