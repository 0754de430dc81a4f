#include "core/ops/attention/attention_geometry.h"

#include <algorithm>
#include <limits>
#include <span>

#include "core/base/at.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/table_limit.h"

namespace graft {

namespace {

constexpr std::int64_t kStackParts = 3;

}  // namespace

SequenceRows::SequenceRows(const Shape& shape, int sequence_axis, int inner_axis)
    : middle(shape.size(sequence_axis + 1, inner_axis)),
      inner(shape.size(inner_axis, shape.rank() - 1)),
      depth(shape[shape.rank() - 1]),
      middle_step(inner * depth),
      row_step(middle * middle_step),
      outer_step(shape[sequence_axis] * row_step) {}

SequenceRows SequenceRows::in_stack(int index) const {
  SequenceRows part = *this;
  part.first = index * middle_step;
  part.middle_step *= kStackParts;
  part.row_step *= kStackParts;
  part.outer_step *= kStackParts;
  return part;
}

std::optional<int> stack_axis_of(const Attributes& attributes, int rank, std::string_view who) {
  if (!attributes.has("stack_axis")) return std::nullopt;
  return normalize_axis(attributes.get_int("stack_axis", 0), rank, who);
}

Shape query_shape(const Shape& input, const Attributes& attributes, std::string_view who) {
  const std::optional<int> axis = stack_axis_of(attributes, input.rank(), who);
  std::vector<std::int64_t> dims = input.dims();
  if (axis) dims.erase(dims.begin() + *axis);
  return Shape(std::move(dims));
}

AttentionBias::AttentionBias(const Shape& bias, const Shape& scores)
    : dims(scores.begin(), scores.end() - 2), steps(broadcast_strides(bias, scores)) {
  key_step = steps.back();
  steps.pop_back();
  query_step = steps.back();
  steps.pop_back();
}

std::int64_t AttentionBias::offset(std::int64_t problem) const {
  std::int64_t offset = 0;
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    offset += problem % dims[axis] * steps[axis];
    problem /= dims[axis];
  }
  return offset;
}

AttentionGeometry::AttentionGeometry(const KernelRequest& request, int bias_input) {
  constexpr std::string_view kWho = "TiledAttention";
  const Attributes& attributes = request.attributes();
  const Shape query = query_shape(request.shape(0), attributes, kWho);
  const int rank = query.rank();
  const int axis = normalize_axis(attributes.get_int("sequence_axis", -2), rank, kWho);
  const std::optional<int> stack_axis = stack_axis_of(attributes, rank + 1, kWho);
  is_stack = stack_axis.has_value();
  const int inner_axis = stack_axis.value_or(axis + 1);
  const auto ending_in = [&](std::int64_t last) {
    std::vector<std::int64_t> dims = query.dims();
    dims.back() = last;
    return Shape(std::move(dims));
  };
  const auto rows_of = [&](int operand) {
    if (is_stack) return SequenceRows(query, axis, inner_axis).in_stack(operand);
    return SequenceRows(request.shape(operand), axis, inner_axis);
  };
  q = rows_of(0);
  k = rows_of(1);
  v = rows_of(2);
  y = SequenceRows(ending_in(v.depth), axis, inner_axis);
  sums = SequenceRows(ending_in(1), axis, inner_axis);
  queries = query[axis];
  keys = is_stack ? queries : request.shape(1)[axis];
  depth = q.depth;
  value_depth = v.depth;
  scale = attributes.get_float("scale", 1.0F);
  std::vector<std::int64_t> scores = query.dims();
  scores.pop_back();
  scores.erase(scores.begin() + axis);
  // An empty operand may name any number of problems; those without work are not walked.
  const bool has_work = queries > 0 || (keys > 0 && depth + value_depth > 0);
  problems = has_work ? Shape(scores).size() : 0;
  has_bias = bias_input < request.input_count() && request.has_input(bias_input);
  if (has_bias) {
    scores.push_back(queries);
    scores.push_back(keys);
    bias = AttentionBias(request.shape(bias_input), Shape(std::move(scores)));
  }
}

std::vector<std::int64_t> visible_keys(const KernelRequest& request, const AttentionGeometry& n,
                                       int bias_input, std::int64_t tile_queries) {
  const std::int64_t tiles = (n.queries + tile_queries - 1) / tile_queries;
  require_small_table(request.node(), tiles);
  std::vector<std::int64_t> visible(static_cast<std::size_t>(tiles), n.keys);
  const bool is_table = n.has_bias && n.bias.query_step > 0 && n.bias.key_step > 0 &&
                        std::ranges::all_of(n.bias.steps, [](auto step) { return step == 0; });
  const Tensor bias = is_table ? request.constant(bias_input) : Tensor();
  if (!bias.defined() || bias.dtype() != DType::f32) return visible;
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const std::span<const float> values = bias.values<const float>();
  std::ranges::fill(visible, 0);
  for (std::int64_t i = 0; i < n.queries; ++i) {
    std::int64_t& most = at(visible, i / tile_queries);
    for (std::int64_t j = n.keys; j > most; --j) {
      if (at(values, i * n.keys + j - 1) != kHidden) most = j;
    }
  }
  return visible;
}

}  // namespace graft
