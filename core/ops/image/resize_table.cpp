// How one axis of Resize is computed (https://onnx.ai/onnx/operators/onnx__Resize.html): each
// output element has a position on the input axis, and a filter around it weighs its neighbours.
// Start by looking at `resize_table`.
#include <algorithm>
#include <cmath>

#include "core/ops/image/resize.h"
#include "core/ops/kernels/window.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

enum class Transformation {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_crop_and_resize
};

Transformation transformation_of(const Node& node) {
  const std::string name =
      node.attributes.get_string("coordinate_transformation_mode", "half_pixel");
  if (name == "half_pixel") return Transformation::half_pixel;
  if (name == "half_pixel_symmetric") return Transformation::half_pixel_symmetric;
  if (name == "pytorch_half_pixel") return Transformation::pytorch_half_pixel;
  if (name == "align_corners") return Transformation::align_corners;
  if (name == "asymmetric") return Transformation::asymmetric;
  if (name == "tf_crop_and_resize") return Transformation::tf_crop_and_resize;
  fail(ErrorKind::model, node.label(), ": coordinate_transformation_mode '", name,
       "' is none of half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, "
       "asymmetric, tf_crop_and_resize");
}

/// Where output element `o` lies on the input axis.
double position(Transformation transformation, const ResizeAxis& axis, std::int64_t o) {
  const auto at = static_cast<double>(o);
  const auto input = static_cast<double>(axis.input);
  const double stretched = axis.scale * input;  // the output's length before it was rounded
  switch (transformation) {
    case Transformation::pytorch_half_pixel:
      if (axis.output == 1) return 0.0;
      break;
    case Transformation::half_pixel_symmetric: {
      const double share = static_cast<double>(axis.output) / stretched;
      return input / 2 * (1 - share) + (at + 0.5) / axis.scale - 0.5;
    }
    case Transformation::align_corners:
      return axis.output == 1 ? 0.0 : at * (input - 1) / (stretched - 1);
    case Transformation::asymmetric:
      return at / axis.scale;
    case Transformation::tf_crop_and_resize: {
      const double length = (axis.crop_end - axis.crop_begin) * (input - 1);
      const double step =
          axis.output == 1 ? length / 2 : at * length / static_cast<double>(axis.output - 1);
      return axis.crop_begin * (input - 1) + step;
    }
    case Transformation::half_pixel:
      break;
  }
  return (at + 0.5) / axis.scale - 0.5;
}

using Round = double (*)(double);

Round rounding_of(const Node& node) {
  const std::string name = node.attributes.get_string("nearest_mode", "round_prefer_floor");
  if (name == "round_prefer_floor") return [](double x) { return std::ceil(x - 0.5); };
  if (name == "round_prefer_ceil") return [](double x) { return std::floor(x + 0.5); };
  if (name == "floor") return [](double x) { return std::floor(x); };
  if (name == "ceil") return [](double x) { return std::ceil(x); };
  fail(ErrorKind::model, node.label(), ": nearest_mode '", name,
       "' is none of round_prefer_floor, round_prefer_ceil, floor, ceil");
}

double linear_filter(double distance) {
  return std::max(0.0, 1.0 - distance);
}

/// R. Keys, "Cubic convolution interpolation for digital image processing" (1981), equation (4).
double cubic_filter(double distance, double a) {
  if (distance <= 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
  if (distance < 2) return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
  return 0.0;
}

/// How neighbours are weighed.
struct Filter {
  explicit Filter(const Node& node, double scale) {
    const std::string mode = node.attributes.get_string("mode", "nearest");
    if (mode != "linear" && mode != "cubic") {
      fail(ErrorKind::model, node.label(), ": mode '", mode, "' is none of nearest, linear, cubic");
    }
    is_cubic = mode == "cubic";
    a = node.attributes.get_float("cubic_coeff_a", -0.75F);
    const bool antialias = node.attributes.get_int("antialias", 0) != 0;
    narrowing = antialias ? std::min(scale, 1.0) : 1.0;
    excludes_outside = node.attributes.get_int("exclude_outside", 0) != 0;
    normalises = antialias || excludes_outside;
  }

  /// Neighbours farther away have no weight.
  double reach() const { return (is_cubic ? 2.0 : 1.0) / narrowing; }
  double weight(double distance) const {
    return is_cubic ? cubic_filter(distance * narrowing, a) : linear_filter(distance * narrowing);
  }

  bool is_cubic = false;
  double a = 0.0;
  double narrowing = 1.0;  ///< below 1 the filter is stretched, so that it covers what it skips
  bool excludes_outside = false;
  bool normalises = false;
};

void add_filtered(const Filter& filter, double x, std::int64_t o, ResizeTable& table) {
  const std::int64_t last = table.input - 1;
  // Beyond these all neighbours are the border.
  x = std::clamp(x, -filter.reach() - 1, static_cast<double>(last) + filter.reach() + 1);
  const auto low = static_cast<std::int64_t>(std::floor(x - filter.reach())) + 1;
  const auto high = static_cast<std::int64_t>(std::ceil(x + filter.reach())) - 1;
  const std::int64_t first = std::clamp<std::int64_t>(low, 0, table.input - table.taps);
  const auto weight_at = [&](std::int64_t at) -> double& {
    const std::int64_t tap = std::clamp<std::int64_t>(at, 0, last) - first;
    return table.weights[static_cast<std::size_t>(tap * table.output + o)];
  };
  double sum = 0.0;
  for (std::int64_t at = low; at <= high; ++at) {
    if (filter.excludes_outside && (at < 0 || at > last)) continue;
    const double weight = filter.weight(std::abs(static_cast<double>(at) - x));
    weight_at(at) += weight;
    sum += weight;
  }
  if (filter.normalises && sum != 0.0) {
    for (std::int64_t at = std::max<std::int64_t>(low, 0); at <= std::min(high, last); ++at) {
      weight_at(at) /= sum;
    }
  }
  table.first[static_cast<std::size_t>(o)] = static_cast<std::int32_t>(first);
}

ResizeTable empty_table(const Node& node, const ResizeAxis& axis, double taps) {
  ResizeTable table{.input = axis.input, .output = axis.output};
  if (axis.input > kMostPerAxis) {
    fail(ErrorKind::unsupported, node.label(), ": resizing an axis of ", axis.input, " elements");
  }
  table.taps = taps < static_cast<double>(axis.input) ? static_cast<std::int64_t>(taps)
                                                      : std::max<std::int64_t>(axis.input, 1);
  require_small_table(node, axis.output, table.taps);
  table.first.resize(static_cast<std::size_t>(axis.output));
  table.weights.resize(static_cast<std::size_t>(axis.output * table.taps));
  return table;
}

}  // namespace

ResizeTable resize_table(const Node& node, const ResizeAxis& axis) {
  const Transformation transformation = transformation_of(node);
  const bool is_nearest = node.attributes.get_string("mode", "nearest") == "nearest";
  const Round round = rounding_of(node);
  std::optional<Filter> filter;
  if (!is_nearest) filter.emplace(node, axis.scale);
  // Whole numbers in an open interval.
  ResizeTable table = empty_table(node, axis, is_nearest ? 1.0 : std::ceil(2 * filter->reach()));
  if (axis.input == 0) return table;
  const auto last = static_cast<double>(axis.input - 1);
  for (std::int64_t o = 0; o < axis.output; ++o) {
    const double x = position(transformation, axis, o);
    if (transformation == Transformation::tf_crop_and_resize &&
        !(x >= 0 && x <= last)) {  // NaN too
      table.outside.push_back(o);
    } else if (is_nearest) {
      // Rounded to float first, as runtimes compute it: 3 / 0.6F is then 5 and not a little less.
      const double at = std::clamp(round(static_cast<float>(x)), 0.0, last);
      table.first[static_cast<std::size_t>(o)] = static_cast<std::int32_t>(at);
      table.weights[static_cast<std::size_t>(o)] = 1.0;
    } else {
      add_filtered(*filter, x, o, table);
    }
  }
  return table;
}

bool ResizeTable::only_moves() const {
  return taps == 1 && std::ranges::count(weights, 1.0) + std::ssize(outside) == output;
}

ResizeTable ResizeTable::transposed(const Node& node) const {
  ResizeTable result{.input = output, .output = input};
  const auto count = static_cast<std::size_t>(input);
  // The outputs that an input element goes to lie between these.
  std::vector<std::int64_t> low(count, output);
  std::vector<std::int64_t> high(count, -1);
  const auto for_each_weight = [&](auto&& visit) {
    for (std::int64_t k = 0; k < taps; ++k) {
      for (std::int64_t o = 0; o < output; ++o) {
        const double weight = weights[static_cast<std::size_t>(k * output + o)];
        if (weight != 0.0)
          visit(static_cast<std::size_t>(first[static_cast<std::size_t>(o)] + k), o, weight);
      }
    }
  };
  for_each_weight([&](std::size_t i, std::int64_t o, double) {
    low[i] = std::min(low[i], o);
    high[i] = std::max(high[i], o);
  });
  for (std::size_t i = 0; i < count; ++i) {
    result.taps = std::max(result.taps, high[i] - low[i] + 1);
  }
  require_small_table(node, input, result.taps);
  result.first.resize(count);
  result.weights.resize(count * static_cast<std::size_t>(result.taps));
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t most = std::max<std::int64_t>(output - result.taps, 0);
    result.first[i] = static_cast<std::int32_t>(std::min(low[i], most));
  }
  for_each_weight([&](std::size_t i, std::int64_t o, double weight) {
    const auto tap = static_cast<std::size_t>(o - result.first[i]);
    result.weights[tap * count + i] += weight;
  });
  return result;
}

}  // namespace graft
