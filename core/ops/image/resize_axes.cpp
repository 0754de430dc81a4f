#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/image/resize.h"
#include "core/ops/kernels/window.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

enum class Policy { stretch, not_larger, not_smaller };

/// Inputs and attributes that say how far the axes stretch. Lists have one entry an axis, in the
/// order of `axes`.
struct Stretch {
  std::vector<int> axes;
  bool is_known = false;  ///< else the rest is not filled in
  std::vector<double> scales;
  std::vector<std::int64_t> sizes;  ///< used when there are no scales
  std::vector<double> crops;        ///< all begins, then all ends; may be empty
  Policy policy = Policy::stretch;
};

Policy policy_of(const InferContext& context) {
  const std::string name = context.attributes().get_string("keep_aspect_ratio_policy", "stretch");
  if (name == "stretch") return Policy::stretch;
  if (name == "not_larger") return Policy::not_larger;
  if (name == "not_smaller") return Policy::not_smaller;
  context.fail(ErrorKind::model, "keep_aspect_ratio_policy '", name,
               "' is none of stretch, not_larger, not_smaller");
}

/// Whether the optional list is there. Before opset 13 an empty one stood for a left-out one.
bool has_list(const InferContext& context, int index) {
  if (!context.has_input(index)) return false;
  const auto length = list_length(context, index);
  return !length || *length > 0;
}

std::vector<double> checked_numbers(const InferContext& context, const Tensor& list,
                                    std::size_t count, std::string_view what) {
  std::vector<double> numbers = to_double(list);
  if (numbers.size() != count) {
    context.fail(ErrorKind::shape, what, " has ", numbers.size(), " elements, wanted ", count);
  }
  if (!std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); })) {
    context.fail(ErrorKind::shape, what, " holds a number that is not finite");
  }
  return numbers;
}

void read_crops(const InferContext& context, Stretch& stretch) {
  const std::string mode =
      context.attributes().get_string("coordinate_transformation_mode", "half_pixel");
  if (mode != "tf_crop_and_resize") return;
  if (!has_list(context, 1)) context.fail(ErrorKind::model, mode, " needs the input roi");
  const Tensor roi = context.constant(1);
  if (!roi.defined()) {
    stretch.is_known = false;
    return;
  }
  stretch.crops = checked_numbers(context, roi, 2 * stretch.axes.size(), "roi");
}

/// The inputs roi, scales and sizes of Resize, or of ResizeGrad.
Stretch read_stretch(const InferContext& context, int rank) {
  Stretch stretch;
  stretch.policy = policy_of(context);
  std::vector<std::int64_t> all(static_cast<std::size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  const bool has_axes = context.attributes().has("axes");
  stretch.axes = unique_axes(has_axes ? context.attributes().get_ints("axes") : all, rank,
                             context.node().label());
  const bool has_scales = has_list(context, 2);
  const bool has_sizes = has_list(context, 3);
  if (has_scales == has_sizes) {
    context.fail(ErrorKind::model, "one of scales and sizes must be given, found ",
                 has_scales ? "both" : "neither");
  }
  const Tensor given = context.constant(has_scales ? 2 : 3);
  if (!given.defined()) return stretch;
  stretch.is_known = true;
  if (has_scales) {
    stretch.scales = checked_numbers(context, given, stretch.axes.size(), "scales");
    if (std::ranges::any_of(stretch.scales, [](double scale) { return scale <= 0; })) {
      context.fail(ErrorKind::shape, "a scale is not above 0");
    }
  } else {
    checked_numbers(context, given, stretch.axes.size(), "sizes");
    stretch.sizes = to_int64(given);
    for (const std::int64_t size : stretch.sizes) {
      if (size < 0 || size > kMostPerAxis) {
        context.fail(ErrorKind::shape, "sizes holds ", size, ", wanted 0 to ", kMostPerAxis);
      }
    }
  }
  read_crops(context, stretch);
  return stretch;
}

/// The length of an axis of `input` elements; `rounded` is that of sizes adjusted by a policy.
std::int64_t scaled(const InferContext& context, std::int64_t input, double scale, bool rounded) {
  const double length = static_cast<double>(input) * scale;
  if (length > static_cast<double>(kMostPerAxis)) {
    context.fail(ErrorKind::shape, "a dim of ", input, " times ", scale, " exceeds ", kMostPerAxis);
  }
  return static_cast<std::int64_t>(std::floor(rounded ? length + 0.5 : length));
}

/// The one scale of all axes that keeps the ratio of the sizes of `x`.
double common_scale(const Stretch& stretch, const std::vector<std::int64_t>& inputs) {
  double scale = stretch.policy == Policy::not_larger ? HUGE_VAL : 0.0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double own = static_cast<double>(stretch.sizes[i]) / static_cast<double>(inputs[i]);
    scale = stretch.policy == Policy::not_larger ? std::min(scale, own) : std::max(scale, own);
  }
  return scale;
}

/// Output and scale of the axis that is entry `i` of the lists, from its input.
void stretch_axis(const InferContext& context, const Stretch& stretch,
                  const std::vector<std::int64_t>& inputs, std::size_t i, ResizeAxis& axis) {
  axis.input = inputs[i];
  if (!stretch.scales.empty()) {
    axis.scale = stretch.scales[i];
    axis.output = scaled(context, axis.input, axis.scale, false);
  } else if (stretch.policy == Policy::stretch) {
    axis.output = stretch.sizes[i];
    axis.scale = static_cast<double>(axis.output) / static_cast<double>(axis.input);
  } else {
    if (std::ranges::find(inputs, 0) != inputs.end()) {
      context.fail(ErrorKind::shape, "an axis without elements has no aspect ratio");
    }
    axis.scale = common_scale(stretch, inputs);
    axis.output = scaled(context, axis.input, axis.scale, true);
  }
  if (axis.input == 0 && axis.output > 0) {
    context.fail(ErrorKind::shape, "an axis without elements cannot become one of ", axis.output);
  }
  if (!stretch.crops.empty()) {
    axis.crop_begin = stretch.crops[i];
    axis.crop_end = stretch.crops[i + stretch.axes.size()];
  }
}

}  // namespace

SymShape resized(const InferContext& context, const SymShape& x) {
  const Stretch stretch = read_stretch(context, x.rank());
  SymShape result = x;
  std::vector<std::int64_t> inputs;
  for (const int axis : stretch.axes) {
    if (result[axis].is_known()) inputs.push_back(result[axis].value());
  }
  const bool all_known = inputs.size() == stretch.axes.size();
  for (std::size_t i = 0; i < stretch.axes.size(); ++i) {
    Dim& dim = result[stretch.axes[i]];
    const bool has_scales = !stretch.scales.empty();
    if (!stretch.is_known) {
      dim = Dim();
    } else if (all_known) {
      ResizeAxis axis;
      stretch_axis(context, stretch, inputs, i, axis);
      dim = axis.output;
    } else if (has_scales && dim.is_known()) {
      dim = scaled(context, dim.value(), stretch.scales[i], false);
    } else if (!has_scales && stretch.policy == Policy::stretch) {
      dim = stretch.sizes[i];
    } else if (!has_scales || stretch.scales[i] != 1.0) {
      dim = Dim();
    }
  }
  return result;
}

std::optional<std::vector<ResizeAxis>> resize_axes(const InferContext& context, const Shape& x) {
  const Stretch stretch = read_stretch(context, x.rank());
  if (!stretch.is_known) return std::nullopt;
  std::vector<std::int64_t> inputs;
  for (const int axis : stretch.axes) inputs.push_back(x[axis]);
  std::vector<ResizeAxis> axes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ResizeAxis axis{.axis = stretch.axes[i]};
    stretch_axis(context, stretch, inputs, i, axis);
    const bool is_whole = axis.crop_begin == 0.0 && axis.crop_end == 1.0;
    if (axis.scale != 1.0 || axis.output != axis.input || !is_whole) axes.push_back(axis);
  }
  std::ranges::sort(axes, {}, &ResizeAxis::axis);
  return axes;
}

}  // namespace graft
