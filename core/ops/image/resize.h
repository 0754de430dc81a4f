#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ops/infer.h"

namespace graft {

/// Resize along one axis, as the inputs scales or sizes, roi and axes say.
struct ResizeAxis {
  int axis = 0;
  std::int64_t input = 1;
  std::int64_t output = 1;
  double scale = 1.0;
  /// Of tf_crop_and_resize: where the crop begins and ends, in units of the whole axis.
  double crop_begin = 0.0;
  double crop_end = 1.0;
};

/// What Resize does to an `x` of this shape: the axes whose elements change, in
/// ascending order. nullopt when scales, sizes or roi are not known before the run.
/// Throws Error{shape} where they do not fit, Error{model} for attributes that do not exist.
std::optional<std::vector<ResizeAxis>> resize_axes(const InferContext& context, const Shape& x);

/// The shape that Resize gives an `x` of this shape, as far as it is known. Throws as above.
SymShape resized(const InferContext& context, const SymShape& x);

/// Gives a Resize node from before opset 11 the modes that stood then: positions are divided by the
/// scale, and the nearest element is the one before when axes are enlarged, the one after when they
/// are reduced, as in onnxruntime. Throws Error{unsupported} where both would be needed.
void set_old_resize_modes(Node& node);

/// Resize along one axis as a linear map:
/// y[o] = sum over k < taps of weights[k * output + o] * x[first[o] + k].
struct ResizeTable {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t taps = 1;
  std::vector<std::int32_t> first;
  std::vector<double> weights;
  /// Outputs that take the extrapolation value instead; their weights are 0.
  std::vector<std::int64_t> outside;

  /// One tap of weight 1, but for those outside: elements are moved, not computed with.
  bool only_moves() const;
  /// The gradient: x from y. Throws Error{unsupported} naming the node if its table is too large.
  ResizeTable transposed(const Node& node) const;
};

/// The table that the node's attributes and the axis give.
/// Throws Error{unsupported} where it would take too many weights.
ResizeTable resize_table(const Node& node, const ResizeAxis& axis);

}  // namespace graft
