#pragma once

#include <cstdint>

#include "core/ops/kernels/window.h"

namespace graft {

/// The sizes of one convolution: x [N, G*C, D...], w [G*M, C, K...], y [N, G*M, E...].
struct ConvGeometry {
  /// Throws Error{shape} naming the node if the shapes or attributes do not fit together. y may
  /// have fewer windows than fit (a transposed convolution with added rows), never more.
  ConvGeometry(const Node& node, const Shape& x, const Shape& w, const Shape& y);
  /// The same with the spatial axes given.
  ConvGeometry(const Node& node, const Shape& x, const Shape& w, const Shape& y,
               const std::vector<WindowAxis>& spatial);

  std::int64_t batch;
  std::int64_t groups;
  /// Channels of one group.
  std::int64_t inputs;
  std::int64_t outputs;
  int rank;
  /// Only for rank <= 3.
  WindowAxes axes{};
  /// y has every window that fits.
  bool is_complete = true;

  std::int64_t input_plane() const { return axes[0].input * axes[1].input * axes[2].input; }
  std::int64_t output_plane() const { return axes[0].output * axes[1].output * axes[2].output; }
  std::int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
};

/// The spatial axes of the convolution that ConvTranspose `node` reverses: `y` are the sizes of its
/// input (the windows), the axes' inputs those of its output.
/// Throws Error{shape} if the attributes do not fit.
std::vector<WindowAxis> transposed_axes(const Node& node, const std::vector<std::int64_t>& y,
                                        const std::vector<std::int64_t>& kernel);

/// The convolution that ConvTranspose `node` from y to x reverses.
ConvGeometry transposed_geometry(const Node& node, const Shape& x, const Shape& w, const Shape& y);

/// Input and output channels of `node` per group, from the attribute group.
/// Throws Error{shape} if group is below 1 or does not divide `channels`.
std::int64_t group_count(const Node& node, std::int64_t channels);

}  // namespace graft
