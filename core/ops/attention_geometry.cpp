#include <algorithm>
#include <limits>
#include <span>

#include "core/ops/attention_geometry_internal.h"
#include "core/ops/broadcast_internal.h"

namespace graft {

SequenceRows::SequenceRows(const Shape& shape, int sequence_axis)
    : inner(shape.size(sequence_axis + 1, shape.rank() - 1)),
      depth(shape[shape.rank() - 1]),
      row_step(inner * depth),
      outer_step(shape[sequence_axis] * row_step) {}

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
  const Shape& query = request.shape(0);
  const int rank = query.rank();
  const int axis =
      normalize_axis(request.attributes().get_int("sequence_axis", -2), rank, "TiledAttention");
  const auto ending_in = [&](std::int64_t last) {
    std::vector<std::int64_t> dims = query.dims();
    dims.back() = last;
    return Shape(std::move(dims));
  };
  q = SequenceRows(query, axis);
  k = SequenceRows(request.shape(1), axis);
  v = SequenceRows(request.shape(2), axis);
  y = SequenceRows(ending_in(v.depth), axis);
  sums = SequenceRows(ending_in(1), axis);
  queries = query[axis];
  keys = request.shape(1)[axis];
  depth = q.depth;
  value_depth = v.depth;
  scale = request.attributes().get_float("scale", 1.0F);
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
  std::vector<std::int64_t> visible(static_cast<std::size_t>(tiles), n.keys);
  const bool is_table = n.has_bias && n.bias.query_step > 0 && n.bias.key_step > 0 &&
                        std::ranges::all_of(n.bias.steps, [](auto step) { return step == 0; });
  const Tensor bias = is_table ? request.constant(bias_input) : Tensor();
  if (!bias.defined() || bias.dtype() != DType::f32) return visible;
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const std::span<const float> values = bias.values<const float>();
  std::ranges::fill(visible, 0);
  for (std::int64_t i = 0; i < n.queries; ++i) {
    std::int64_t& most = visible[static_cast<std::size_t>(i / tile_queries)];
    for (std::int64_t j = n.keys; j > most; --j) {
      if (values[static_cast<std::size_t>(i * n.keys + j - 1)] != kHidden) most = j;
    }
  }
  return visible;
}

}  // namespace graft
