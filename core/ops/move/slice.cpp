#include "core/ops/move/slice.h"

#include <algorithm>
#include <limits>

#include "core/ops/move/move_lowering.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

constexpr std::int64_t kLeastIndex = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMostIndex = std::numeric_limits<std::int64_t>::max();

/// What the node asks for, checked; one entry a sliced axis.
struct SliceRequest {
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  std::vector<int> axes;
  std::vector<std::int64_t> steps;
};

/// nullopt when something is not known before the run.
std::optional<SliceRequest> slice_request(const InferContext& context, int rank) {
  const auto starts = known_ints(context, 1, "starts");
  const auto ends = known_ints(context, 2, "ends");
  std::optional<std::vector<std::int64_t>> axes = known_ints(context, 3, "axes");
  std::optional<std::vector<std::int64_t>> steps = known_ints(context, 4, "steps");
  if (!starts || !ends) return std::nullopt;
  if (!axes && has_ints(context, 3, "axes")) return std::nullopt;
  if (!steps && has_ints(context, 4, "steps")) return std::nullopt;
  const std::size_t count = starts->size();
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < count; ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (!steps) steps.emplace(count, 1);
  if (ends->size() != count || axes->size() != count || steps->size() != count) {
    context.fail(ErrorKind::shape, "starts, ends, axes and steps have ", count, ", ", ends->size(),
                 ", ", axes->size(), " and ", steps->size(), " elements, wanted equal numbers");
  }
  if (std::ranges::find(*steps, 0) != steps->end()) {
    context.fail(ErrorKind::shape, "a step is 0");
  }
  return SliceRequest{*starts, *ends, unique_axes(*axes, rank, context.node().label()), *steps};
}

/// Whether [start, end) is all of an axis, however long it is.
bool takes_all(std::int64_t start, std::int64_t end, std::int64_t step) {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max();
  if (step == 1) return start == 0 && end >= kLongest;
  return step == -1 && (start == -1 || start >= kLongest) && end <= -kLongest;
}

}  // namespace

AxisRange slice_range(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t dim) {
  if (dim == 0) return {0, step, 0};
  if (start < 0) start += dim;
  if (end < 0) end = end < -dim ? -1 : end + dim;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, dim);
    end = std::clamp<std::int64_t>(end, 0, dim);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = std::clamp<std::int64_t>(start, -1, dim - 1);
  end = std::clamp<std::int64_t>(end, -1, dim - 1);
  // -step does not exist for the least number; no axis is that long.
  const std::int64_t magnitude = step == kLeastIndex ? kMostIndex : -step;
  return {std::max<std::int64_t>(start, 0), step,
          start > end ? (start - end - 1) / magnitude + 1 : 0};
}

std::optional<std::vector<AxisRange>> slice_ranges(const Node& node, const Shape& shape) {
  const InferContext context(const_cast<Node&>(node));  // reads only
  const auto request = slice_request(context, shape.rank());
  if (!request) return std::nullopt;
  std::vector<AxisRange> ranges;
  for (const std::int64_t dim : shape) ranges.push_back({0, 1, dim});
  for (std::size_t i = 0; i < request->axes.size(); ++i) {
    const int axis = request->axes[i];
    ranges[static_cast<std::size_t>(axis)] =
        slice_range(request->starts[i], request->ends[i], request->steps[i], shape[axis]);
  }
  return ranges;
}

SliceView::SliceView(const Shape& whole, const std::vector<AxisRange>& ranges) {
  const std::vector<std::int64_t> strides = whole.strides();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    offset += ranges[i].start * strides[i];
    // The step of an axis with one element is never taken, and may be too long to multiply.
    steps.push_back(ranges[i].count > 1 ? ranges[i].step * strides[i] : 0);
  }
}

std::vector<AxisRange> slice_grad_ranges(const Node& node, const Shape& dy) {
  const std::vector<std::int64_t> starts = node.attributes.get_ints("starts");
  const std::vector<std::int64_t> steps = node.attributes.get_ints("steps");
  std::vector<AxisRange> ranges;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    ranges.push_back({starts[i], steps[i], dy[static_cast<int>(i)]});
  }
  return ranges;
}

namespace {

/// Without constants, the axes that may change: all of them when not even those are known.
SymShape unknown_slice(const InferContext& context, const SymShape& shape) {
  const auto axes = known_ints(context, 3, "axes");
  if (!axes) return unknown_dims(shape.rank());
  SymShape result = shape;
  for (const int axis : unique_axes(*axes, shape.rank(), context.node().label())) {
    result[axis] = Dim();
  }
  return result;
}

void infer_slice(InferContext& context) {
  if (!has_ints(context, 1, "starts") || !has_ints(context, 2, "ends")) {
    context.fail(ErrorKind::model, "starts or ends are missing");
  }
  const DType dtype = context.dtype(0);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, dtype);
  const auto request = slice_request(context, shape->rank());
  if (!request) return context.set_output(0, dtype, unknown_slice(context, *shape));
  SymShape result = *shape;
  for (std::size_t i = 0; i < request->axes.size(); ++i) {
    Dim& dim = result[request->axes[i]];
    const std::int64_t start = request->starts[i];
    const std::int64_t end = request->ends[i];
    const std::int64_t step = request->steps[i];
    if (dim.is_known()) {
      dim = slice_range(start, end, step, dim.value()).count;
    } else if (!takes_all(start, end, step)) {
      dim = Dim();
    }
  }
  context.set_output(0, dtype, result);
}

/// Attributes shape, starts, steps: one entry an axis of the result.
void infer_slice_grad(InferContext& context) {
  const std::vector<std::int64_t> dims = context.attributes().get_ints("shape");
  const std::vector<std::int64_t> starts = context.attributes().get_ints("starts");
  const std::vector<std::int64_t> steps = context.attributes().get_ints("steps");
  const Shape result(dims);
  if (starts.size() != dims.size() || steps.size() != dims.size()) {
    context.fail(ErrorKind::shape, "shape, starts and steps differ in length");
  }
  const SymShape* const dy = context.shape(0);
  context.require_rank(0, result.rank(), result.rank());
  for (int axis = 0; dy != nullptr && axis < result.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const Dim& dim = (*dy)[axis];
    if (!dim.is_known() || dim.value() == 0) continue;
    const std::int64_t reach = checked_multiply(dim.value() - 1, std::abs(steps[at]));
    const std::int64_t last = steps[at] > 0 ? starts[at] + reach : starts[at] - reach;
    if (std::min(starts[at], last) < 0 || std::max(starts[at], last) >= dims[at] ||
        steps[at] == 0) {
      context.fail(ErrorKind::shape, context.input(0).type(), " does not fit into ", result);
    }
  }
  context.set_output(0, context.dtype(0), result);
}

void upgrade_slice(Node& node, std::int64_t from, Builder& builder) {
  if (from >= 10) return;
  ints_attribute_to_input(node, builder, "starts", 1);
  ints_attribute_to_input(node, builder, "ends", 2);
  ints_attribute_to_input(node, builder, "axes", 3);
}

std::vector<Expr> slice_rule(const Gradient& g) {
  const Shape shape = g.x().shape();
  const auto ranges = slice_ranges(g.node(), shape);
  if (!ranges) fail(ErrorKind::unsupported, g.node().label(), ": its bounds are not known");
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> steps;
  for (const AxisRange& range : *ranges) {
    starts.push_back(range.start);
    // A step beyond the axis takes one element, whatever it is.
    steps.push_back(range.count > 1 ? range.step : 1);
  }
  return {call_internal("SliceGrad", {g.dy()},
                        {{"shape", shape.dims()}, {"starts", starts}, {"steps", steps}})};
}

std::vector<Expr> slice_grad_rule(const Gradient& g) {
  const std::vector<AxisRange> ranges = slice_grad_ranges(g.node(), g.x().shape());
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> axes;
  std::vector<std::int64_t> steps;
  for (const AxisRange& range : ranges) {
    const std::int64_t end = range.start + range.step * range.count;
    axes.push_back(static_cast<std::int64_t>(axes.size()));
    starts.push_back(range.start);
    ends.push_back(end < 0 ? kLeastIndex : end);
    steps.push_back(range.step);
  }
  Builder& builder = g.builder();
  return {call("Slice", {g.dy(), constant_ints(builder, starts), constant_ints(builder, ends),
                         constant_ints(builder, axes), constant_ints(builder, steps)})};
}

std::vector<Sample> slice_samples() {
  const SampleInput x{{5, 6}};
  const double far = 2147483647.0;
  return {
      {"rows", {x, ints({1}), ints({3})}},
      {"both", {x, ints({1, 2}), ints({4, 6})}},
      {"axes", {x, ints({2}), ints({5}), ints({1})}},
      {"negative_axes", {x, ints({0, 1}), ints({far, far}), ints({-1, 0})}},
      {"negative_bounds", {x, ints({-4}), ints({-1}), ints({1})}},
      {"steps", {x, ints({0, 1}), ints({5, 6}), ints({0, 1}), ints({2, 3})}},
      {"reversed", {x, ints({-1}), ints({-far}), ints({1}), ints({-1})}},
      {"reversed_by_two", {x, ints({4, 5}), ints({0, 0}), ints({0, 1}), ints({-2, -3})}},
      {"clamped", {x, ints({-100, 3}), ints({100, 100}), ints({0, 1})}},
      {"step_beyond", {x, ints({1}), ints({5}), ints({0}), ints({100})}},
      {"nothing", {x, ints({3}), ints({3})}},
      {"beyond_the_end", {x, ints({100}), ints({200})}},
      {"crossed", {x, ints({4}), ints({1})}},
      {"of_empty", {{{0, 3}}, ints({0}), ints({5})}},
      {"of_one", {{{1, 3}}, ints({0, 1}), ints({1, 2})}},
      {"of_empty_reversed", {{{0, 3}}, ints({-1}), ints({-5}), ints({0}), ints({-1})}},
      {"rank_4", {{{2, 3, 4, 5}}, ints({1, 1}), ints({3, 4}), ints({1, 3})}},
      {"integers",
       {{.shape = {7}, .low = -9, .high = 9, .dtype = DType::i64}, ints({2}), ints({6})}},
  };
}

using Ints = std::vector<std::int64_t>;

std::vector<Sample> slice_grad_samples() {
  const auto with = [](std::string name, const Shape& dy, const Ints& shape, const Ints& starts,
                       const Ints& steps) {
    return Sample{
        std::move(name), {{dy}}, {{"shape", shape}, {"starts", starts}, {"steps", steps}}};
  };
  return {
      with("block", {2, 3}, {4, 5}, {1, 2}, {1, 1}),
      with("whole", {2, 3}, {2, 3}, {0, 0}, {1, 1}),
      with("steps", {2, 3}, {4, 7}, {1, 0}, {2, 3}),
      with("reversed", {3, 3}, {3, 5}, {2, 4}, {-1, -2}),
      with("nothing", {0, 3}, {2, 3}, {0, 0}, {1, 1}),
      with("one", {1, 1}, {1, 3}, {0, 2}, {1, 1}),
      with("scalar", {}, {}, {}, {}),
      with("over_threads", {90, 120}, {200, 250}, {7, 9}, {2, 1}),
  };
}

}  // namespace

/// Slice and its gradient SliceGrad, which sets dy into zeros.
void register_slice(OpRegistry& registry) {
  registry.add({.name = "Slice",
                .since = {{1}, {10, "bounds as inputs, steps"}, {11, "negative axes"}, {13}},
                .inputs = {{"data"},
                           {"starts", Arity::optional},  // attributes before opset 10
                           {"ends", Arity::optional},
                           {"axes", Arity::optional},
                           {"steps", Arity::optional}},
                .outputs = {{"output"}},
                .infer = infer_slice,
                .upgrade = upgrade_slice,
                .mixed_precision = kFollows,
                .only_moves = true,
                .backward = slice_rule,
                .samples = slice_samples});
  registry.add({.name = "SliceGrad",
                .domain = kInternalDomain,
                .inputs = {{"dy"}},
                .outputs = {{"dx"}},
                .attributes = {{"shape", AttributeType::integers, true},
                               {"starts", AttributeType::integers, true},
                               {"steps", AttributeType::integers, true}},
                .infer = infer_slice_grad,
                .lower = lower_slice_grad,
                .backward = slice_grad_rule,
                .samples = slice_grad_samples});
}

}  // namespace graft
