#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/attention/tiled_attention.h"

namespace graft {
namespace {

/// k and v are of rank 0 where q is a stack of all three.
struct TiledAttentionCase {
  std::string name;
  Shape q;
  Shape k;
  Shape v;
  std::optional<Shape> bias = std::nullopt;
  Attributes attributes{};
};

Attributes sequence_at(int axis) {
  return {{"sequence_axis", axis}, {"scale", 0.5F}};
}
TiledAttentionCase stack(const char* name, const Shape& shape, int sequence_axis, int stack_axis,
                         std::optional<Shape> bias = std::nullopt) {
  Attributes attributes = sequence_at(sequence_axis);
  attributes.set({"stack_axis", stack_axis});
  return {name, shape, {}, {}, std::move(bias), std::move(attributes)};
}

std::vector<TiledAttentionCase> tiled_attention_cases() {
  const Attributes half{{"scale", 0.5F}};
  return {
      {"matrix", {5, 4}, {5, 4}, {5, 4}},
      {"heads", {2, 3, 5, 4}, {2, 3, 5, 4}, {2, 3, 5, 4}, {}, half},
      {"other_lengths", {2, 7, 4}, {2, 3, 4}, {2, 3, 6}, {}, half},
      {"bias", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, Shape{3, 5}, half},
      {"bias_of_keys", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, Shape{2, 1, 1, 5}, half},
      {"bias_of_queries", {2, 3, 4}, {2, 5, 4}, {2, 5, 4}, Shape{2, 3, 1}},
      {"bias_of_heads", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}, Shape{2, 3, 5}, half},
      {"sequence_first", {5, 2, 3, 4}, {6, 2, 3, 4}, {6, 2, 3, 2}, {}, sequence_at(0)},
      {"sequence_inside", {2, 5, 3, 4}, {2, 6, 3, 4}, {2, 6, 3, 2}, Shape{3, 5, 6}, sequence_at(1)},
      {"one_key", {3, 4, 2}, {3, 1, 2}, {3, 1, 2}},
      {"one_query", {3, 1, 2}, {3, 4, 2}, {3, 4, 2}},
      {"no_keys", {2, 3, 4}, {2, 0, 4}, {2, 0, 4}},
      {"no_queries", {2, 0, 4}, {2, 3, 4}, {2, 3, 4}},
      {"no_problems", {0, 3, 4}, {0, 3, 4}, {0, 3, 4}},
      {"no_depth", {2, 3, 0}, {2, 4, 0}, {2, 4, 2}},
      {"many_small", {4, 37, 16}, {4, 37, 16}, {4, 37, 16}, {}, sequence_at(0)},
      {"many_small_odd", {53, 3, 5}, {53, 6, 5}, {53, 6, 18}, Shape{53, 1, 6}, half},
      {"tiles", {2, 70, 16}, {2, 150, 16}, {2, 150, 16}, {}, half},
      {"tiles_odd", {3, 83, 21}, {3, 131, 21}, {3, 131, 37}, Shape{83, 131}, sequence_at(1)},
      {"tiles_inside", {2, 65, 3, 32}, {2, 65, 3, 32}, {2, 65, 3, 32}, {}, sequence_at(1)},
      {"tiles_deep", {1, 40, 80}, {1, 49, 80}, {1, 49, 64}, Shape{1, 1, 49}, half},
      stack("stack", {5, 3, 4}, 0, 1),
      stack("stack_inside", {2, 5, 2, 3, 2, 4}, 1, 3, Shape{2, 2, 2, 5, 5}),
      stack("stack_of_none", {2, 0, 3, 2, 4}, 1, 2),
      stack("many_small_stacks", {4, 13, 3, 3, 16}, 0, 2),
      stack("tiles_of_stacks", {2, 70, 3, 2, 16}, 1, 2),
      stack("tiles_of_stacks_odd", {67, 2, 3, 3, 21}, 0, 2, Shape{67, 67}),
  };
}

/// What stands beside q, k and v, unrounded whatever their type is: a bias, a number of each query.
SampleInput beside(const Shape& shape, double low = -1.0, double high = 1.0) {
  return {.shape = shape, .low = low, .high = high, .keeps_f32 = true};
}

SampleInput optional_input(const Shape& shape) {
  return shape.rank() > 0 ? SampleInput{shape} : absent();
}
/// The shape of y.
Shape result_shape(const TiledAttentionCase& c) {
  std::vector<std::int64_t> dims = query_shape(c.q, c.attributes, c.name).dims();
  if (c.v.rank() > 0) dims.back() = c.v[c.v.rank() - 1];
  return Shape(std::move(dims));
}

/// A bias that is known before the run and shows each query the keys up to its own.
SampleInput causal(std::int64_t length) {
  SampleInput bias = beside({length, length});
  bias.is_constant = true;
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      bias.values.push_back(j <= i ? 0.125 * static_cast<double>(j % 3)
                                   : -std::numeric_limits<double>::infinity());
    }
  }
  return bias;
}

/// Probabilities, which sum to 1 over the keys, and gradients of scores may be rounded to the 8
/// bits of bf16 for the products that they enter, whatever these sum up to.
std::vector<Sample> with_rounded_probabilities(std::vector<Sample> samples, double absolute) {
  for (Sample& sample : samples) sample.short_absolute = absolute;
  return samples;
}

}  // namespace

std::vector<Sample> tiled_attention_samples() {
  std::vector<Sample> samples;
  for (const TiledAttentionCase& c : tiled_attention_cases()) {
    Sample sample{c.name, {{c.q}, optional_input(c.k), optional_input(c.v)}, c.attributes, 2};
    if (c.bias) sample.inputs.push_back(beside(*c.bias));
    if (c.name == "no_keys") {
      sample.no_gradient_check = "log_sum_exp is minus infinity";
    }
    samples.push_back(std::move(sample));
  }
  constexpr std::int64_t kLong = 150;
  const Shape shape{kLong, 2, 8};
  samples.push_back({"causal", {{shape}, {shape}, {shape}, causal(kLong)}, sequence_at(0), 2});
  samples.push_back({"far_from_zero",
                     {{{2, 20, 8}, 4.0, 5.0}, {{2, 20, 8}, 1.0, 4.0}, {{2, 20, 8}}},
                     {},
                     2,
                     "",
                     1e-5,
                     5e-5});
  return with_rounded_probabilities(std::move(samples), 0x1p-9);
}

/// share, log_sum_exp and dy are any numbers: the formula does not ask whether they belong to q and
/// k.
std::vector<Sample> tiled_attention_grad_samples() {
  std::vector<Sample> samples;
  for (const TiledAttentionCase& c : tiled_attention_cases()) {
    const Shape y = result_shape(c);
    std::vector<std::int64_t> dims = y.dims();
    dims.pop_back();
    const double log_keys = std::log(static_cast<double>(std::max(c.k.size(), c.q.size()) + 1));
    const SampleInput sums = beside(Shape(dims), log_keys, log_keys + 1.0);
    Sample sample{c.name,
                  {{c.q}, optional_input(c.k), optional_input(c.v), beside(Shape(dims)), sums, {y}},
                  c.attributes,
                  c.k.rank() > 0 ? 3 : 1};
    if (c.bias) sample.inputs.push_back(beside(*c.bias));
    samples.push_back(std::move(sample));
  }
  constexpr std::int64_t kLong = 150;
  const Shape shape{kLong, 2, 8};
  const SampleInput sums = beside({kLong, 2}, 5.0, 6.0);
  samples.push_back({"causal",
                     {{shape}, {shape}, {shape}, beside({kLong, 2}), sums, {shape}, causal(kLong)},
                     sequence_at(0),
                     3});
  return with_rounded_probabilities(std::move(samples), 0x1p-8);
}

}  // namespace graft
