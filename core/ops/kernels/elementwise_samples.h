#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/sample.h"

namespace graft {

/// Why a gradient cannot be checked by differences on very many elements of an op with a kink.
inline constexpr const char* kKinks = "some of the many elements lie within the step of a kink";

/// One input in all shapes that an element-wise kernel can tell apart: odd, scalar, empty, one
/// element, more elements than one thread takes. Elements lie in [low, high]. `kinks`: the op is
/// not smooth within the range.
inline std::vector<Sample> unary_samples(double low, double high, bool kinks = false,
                                         const Attributes& attributes = {},
                                         DType dtype = DType::f32) {
  const auto sample = [&](std::string name, Shape shape) {
    return Sample{.name = std::move(name),
                  .inputs = {{.shape = std::move(shape), .low = low, .high = high, .dtype = dtype}},
                  .attributes = attributes};
  };
  std::vector<Sample> samples{sample("odd_size", {3, 11}), sample("scalar", {}),
                              sample("empty", {0, 3}), sample("one_element", {1}),
                              sample("many", {7, 4999})};
  if (kinks) samples.back().no_gradient_check = kKinks;
  return samples;
}

/// One input of the given elements: limits, ties, kinks. The gradient is not checked there.
inline Sample value_sample(std::string name, std::vector<double> values, Attributes attributes = {},
                           DType dtype = DType::f32) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {.name = std::move(name),
          .inputs = {{.shape = {count}, .values = std::move(values), .dtype = dtype}},
          .attributes = std::move(attributes),
          .no_gradient_check = "the elements lie on limits"};
}

/// Two inputs of elements in [low, high]: same shape, broadcasting either way and both, scalars, an
/// empty tensor, more elements than one thread takes (along one run and over many).
inline std::vector<Sample> binary_samples(const SampleInput& a, const SampleInput& b,
                                          const Attributes& attributes = {}) {
  const auto sample = [&](std::string name, Shape a_shape, Shape b_shape) {
    SampleInput x = a;
    SampleInput y = b;
    x.shape = std::move(a_shape);
    y.shape = std::move(b_shape);
    return Sample{
        .name = std::move(name), .inputs = {std::move(x), std::move(y)}, .attributes = attributes};
  };
  return {
      sample("same_shape", {2, 3}, {2, 3}),
      sample("right_row", {2, 3}, {3}),
      sample("left_column", {2, 1}, {2, 3}),
      sample("both", {2, 1, 4}, {3, 1}),
      sample("channel", {2, 3, 4, 5}, {1, 3, 1, 1}),
      sample("scalars", {}, {}),
      sample("right_scalar", {5}, {}),
      sample("left_scalar", {}, {17}),
      sample("empty", {0, 3}, {3}),
      sample("one_size_dims", {1, 1}, {1, 1}),
      sample("many_in_one_run", {34993}, {34993}),
      sample("many_runs", {9, 1, 389}, {10, 389}),
  };
}

/// Adds `more` to `samples`.
inline std::vector<Sample> operator+(std::vector<Sample> samples, std::vector<Sample> more) {
  for (Sample& sample : more) samples.push_back(std::move(sample));
  return samples;
}

}  // namespace graft
