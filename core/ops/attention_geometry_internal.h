#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/kernel.h"

namespace graft {

/// Where the problems of a TiledAttention lie in an operand [outer..., sequence, inner..., depth]:
/// there is one for each index of the outer and inner axes. Steps in elements.
struct SequenceRows {
  SequenceRows() = default;
  SequenceRows(const Shape& shape, int sequence_axis);

  /// The first row of a problem.
  std::int64_t offset(std::int64_t problem) const {
    return offset(problem / inner, problem % inner);
  }
  /// By its outer and inner index.
  std::int64_t offset(std::int64_t outer_index, std::int64_t inner_index) const {
    return outer_index * outer_step + inner_index * depth;
  }

  std::int64_t inner = 1;
  std::int64_t depth = 1;
  std::int64_t row_step = 1;
  std::int64_t outer_step = 1;
};

/// What is added to the scores; it broadcasts to [problem axes..., query, key].
struct AttentionBias {
  AttentionBias() = default;
  AttentionBias(const Shape& bias, const Shape& scores);

  std::int64_t offset(std::int64_t problem) const;

  std::vector<std::int64_t> dims{};   ///< of the problem axes
  std::vector<std::int64_t> steps{};  ///< along these
  std::int64_t query_step = 0;
  std::int64_t key_step = 0;
};

/// The problems of a TiledAttention, or of its gradient: how many, how large, where they lie.
struct AttentionGeometry {
  /// `bias_input`: the input that is the bias, if the node has one.
  AttentionGeometry(const KernelRequest& request, int bias_input);

  /// Of the two products of the forward pass.
  double multiply_adds() const {
    return static_cast<double>(problems) * static_cast<double>(queries) *
           static_cast<double>(keys) * static_cast<double>(depth + value_depth);
  }

  std::int64_t problems;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t depth;
  std::int64_t value_depth;
  float scale;
  SequenceRows q;
  SequenceRows k;
  SequenceRows v;
  SequenceRows y;
  SequenceRows sums;  ///< of log_sum_exp, its rows one number long
  bool has_bias;
  AttentionBias bias{};
};

/// By tile of queries, how many of the first keys any of them can see: where a bias known before
/// the run hides all others, as a causal mask does, nothing beyond is computed.
std::vector<std::int64_t> visible_keys(const KernelRequest& request, const AttentionGeometry& n,
                                       int bias_input, std::int64_t tile_queries);

}  // namespace graft
