#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/ops/kernel.h"

namespace graft {

/// Which of the problems of a TiledAttention: there is one for each index of the outer, middle and
/// inner axes.
struct ProblemIndex {
  std::int64_t outer;
  std::int64_t middle;
  std::int64_t inner;
};

/// Where the problems lie in an operand [outer..., sequence, middle..., inner..., depth], or in one
/// part of a stack [outer..., sequence, middle..., part, inner..., depth]. Steps in elements.
struct SequenceRows {
  SequenceRows() = default;
  /// The inner axes start at `inner_axis`.
  SequenceRows(const Shape& shape, int sequence_axis, int inner_axis);
  /// The same rows as part `index` of a stack of three.
  SequenceRows in_stack(int index) const;

  /// The first row of a problem.
  constexpr std::int64_t offset(std::int64_t problem) const { return offset(index_of(problem)); }
  constexpr std::int64_t offset(const ProblemIndex& at) const {
    return first + at.outer * outer_step + at.middle * middle_step + at.inner * depth;
  }
  constexpr ProblemIndex index_of(std::int64_t problem) const {
    const std::int64_t group = problem / inner;
    return {group / middle, group % middle, problem % inner};
  }

  std::int64_t middle = 1;
  std::int64_t inner = 1;
  std::int64_t depth = 1;
  std::int64_t first = 0;
  std::int64_t middle_step = 1;
  std::int64_t row_step = 1;
  std::int64_t outer_step = 1;
};

/// The axis of input 0 along which q, k and v stand in it, side by side: attribute `stack_axis`.
/// nullopt where each is an input of its own. Throws Error{shape} if it is out of range.
std::optional<int> stack_axis_of(const Attributes& attributes, int rank, std::string_view who);
/// The shape of q: that of input 0, without the axis of a stack.
Shape query_shape(const Shape& input, const Attributes& attributes, std::string_view who);

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

  /// Which input q, k or v (0, 1, 2) lies in, and which output its gradient.
  int operand(int index) const { return is_stack ? 0 : index; }
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
  bool is_stack;
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
