#pragma once

#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/for_tests.h"
#include "core/base/shape.h"
#include "core/graph/attribute.h"

namespace graft {

/// One input of a sample. Elements are `values` when given; else uniform in [low, high], or, with
/// `distinct`, a shuffled grid in that range, so that no two are near each other (max, sort).
struct SampleInput {
  Shape shape{};
  double low = -1.0;
  double high = 1.0;
  std::vector<double> values{};
  /// f32 stands for "the float type under test": the sweep also runs it in f64.
  DType dtype = DType::f32;
  bool distinct = false;
  /// Known before the run (axes, shapes, pads): becomes an initializer.
  bool is_constant = false;
  bool is_absent = false;
  /// f32 where a 16-bit type is under test: what an op of such operands reads unrounded.
  bool keeps_f32 = false;
};

/// A constant i64 input: axes, shapes, pads.
inline SampleInput ints(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {.shape = {count}, .values = std::move(values), .dtype = DType::i64, .is_constant = true};
}
/// A constant scalar.
inline SampleInput constant_number(double value, DType dtype = DType::i64) {
  return {.shape = {}, .values = {value}, .dtype = dtype, .is_constant = true};
}
inline SampleInput absent() {
  return {.is_absent = true};
}

/// One call of an op on which the sweep tests every property.
struct Sample {
  /// Unique within the op, snake_case.
  std::string name;
  std::vector<SampleInput> inputs;
  Attributes attributes{};
  int outputs = 1;
  /// Says why the gradient cannot be checked by differences (a random or integer result); else
  /// empty.
  std::string no_gradient_check{};
  /// f32 against f64: |difference| <= absolute + relative * |reference|.
  double relative = 1.3e-6;
  double absolute = 1e-5;
  /// Of kernels of 16-bit floats, where it is larger than `absolute`: 1 where numbers are rounded
  /// to integers, so that a last place decides.
  double short_absolute = 0.0;
};

using Samples = ForTests<std::vector<Sample>()>;

/// Of an op that the sweep cannot call: unit tests do.
inline std::vector<Sample> no_samples() {
  return {};
}

}  // namespace graft
