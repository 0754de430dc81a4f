// What the sweep cannot tell of updates whose state is stored in bf16.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"
#include "tests/core/threads.h"

namespace graft {
namespace {

using testing::call_internal_op;
using ::testing::HasSubstr;

Tensor filled(std::int64_t size, double value) {
  return Tensor::full(DType::f32, {size}, value);
}

double mean(const Tensor& tensor) {
  const std::vector<double> values = to_double(tensor);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The state `which` of an update that is repeated on the same gradient.
Tensor repeated(std::string_view op, std::vector<Tensor> inputs, int which, int steps,
                Attributes attributes = {}) {
  constexpr std::size_t kFirstState = 4;
  const int outputs = static_cast<int>(inputs.size() - kFirstState) + 1;
  const testing::OneNode one(op, kInternalDomain, inputs, outputs, std::move(attributes));
  const PreparedKernel kernel = prepare_kernel(*one.node, cpu());
  for (int step = 1; step <= steps; ++step) {
    inputs[3] = Tensor::scalar<std::int64_t>(step);
    const std::vector<Tensor> results = evaluate(kernel, *one.node, inputs);
    std::copy(results.begin() + 1, results.end(), inputs.begin() + kFirstState);
  }
  return inputs[kFirstState + static_cast<std::size_t>(which)];
}

/// A sum of 1 takes in 1e-4 two thousand times: each time less than half of its last place, 2^-8,
/// so that rounding to nearest would leave it at 1. A walk of n steps up by 2^-7 has the variance
/// n p (1 - p) 2^-14, p = 1e-4 2^7.
TEST(Bf16State, TinyChangesAddUpAsInF32) {
  constexpr std::int64_t kSize = 4099;
  constexpr int kSteps = 2000;
  const std::vector<Tensor> inputs{filled(kSize, 0.0), filled(kSize, 0.01), Tensor::scalar(0.1F),
                                   Tensor::scalar<std::int64_t>(1), filled(kSize, 1.0)};
  std::vector<Tensor> stored = inputs;
  stored[4] = stored[4].cast(DType::bf16);
  const double wanted = mean(repeated("AdagradUpdate", inputs, 0, kSteps));
  EXPECT_NEAR(wanted, 1.2, 1e-4);
  const Tensor found = repeated("AdagradUpdate", stored, 0, kSteps);
  EXPECT_EQ(found.dtype(), DType::bf16);
  const double deviation = std::sqrt(kSteps * 0.0128 * 0.9872 / kSize) * 0x1p-7;
  EXPECT_NEAR(mean(found), wanted, 4 * deviation);
}

/// Adam's averages of a gradient that has gone: 0.999^n and -0.99^n of what they were.
TEST(Bf16State, AveragesFadeAsInF32) {
  constexpr std::int64_t kSize = 4099;
  const std::vector<Tensor> inputs{filled(kSize, 0.0),
                                   filled(kSize, 0.0),
                                   Tensor::scalar(0.1F),
                                   Tensor::scalar<std::int64_t>(1),
                                   filled(kSize, -1.0).cast(DType::bf16),
                                   filled(kSize, 1.0).cast(DType::bf16)};
  const Attributes betas{{"beta1", AttributeValue(0.99F)}, {"beta2", AttributeValue(0.999F)}};
  // A walk down by parts of 2^-8, the last place below 1, varies by less than if it were 2^-7.
  const double deviation = std::sqrt(0.4 / kSize * 0x1p-8);
  EXPECT_NEAR(mean(repeated("AdamUpdate", inputs, 1, 500, betas)), std::pow(0.999, 500),
              4 * deviation);
  EXPECT_NEAR(mean(repeated("AdamUpdate", inputs, 0, 50, betas)), -std::pow(0.99, 50),
              4 * deviation);
}

struct Call {
  std::vector<Tensor> inputs;

  /// Of elements that are no round numbers, with states that bf16 holds.
  explicit Call(std::int64_t rows, std::int64_t columns) {
    const Shape shape{rows, columns};
    const auto numbers = [&](double factor, double offset) {
      Tensor tensor = Tensor::empty(DType::f32, shape);
      double at = 0.0;
      for (float& value : tensor.values<float>()) {
        value = static_cast<float>(offset + factor * std::sin(at += 1.0));
      }
      return tensor;
    };
    inputs = {numbers(1.0, 0.0),
              numbers(0.25, 0.0),
              Tensor::scalar(0.1F),
              Tensor::scalar<std::int64_t>(5),
              numbers(0.1, 0.0).cast(DType::bf16),
              numbers(0.1, 0.2).cast(DType::bf16)};
  }
};

TEST(Bf16State, TheParameterIsUpdatedBeforeTheStateIsRounded) {
  const Call call(31, 301);
  std::vector<Tensor> wide = call.inputs;
  for (const std::size_t i : {4, 5}) wide[i] = wide[i].cast(DType::f32);
  const auto found = call_internal_op("AdamUpdate", call.inputs, {}, 3);
  const auto wanted = call_internal_op("AdamUpdate", wide, {}, 3);
  EXPECT_TRUE(equal_bits(found[0], wanted[0]));
  for (const std::size_t i : {1, 2}) {
    const std::vector<double> is = to_double(found[i]);
    const std::vector<double> exact = to_double(wanted[i]);
    for (std::size_t at = 0; at < is.size(); ++at) {
      ASSERT_NEAR(is[at], exact[at], 0x1p-7 * std::abs(exact[at])) << "state " << i;
    }
  }
}

TEST(Bf16State, BitsDoNotDependOnThreadsNorOnTheFormOfTheUpdate) {
  constexpr std::int64_t kRows = 97;
  constexpr std::int64_t kColumns = 1021;
  Call call(kRows, kColumns);
  // A product of one term is exact in every kernel.
  const Tensor a = Tensor::full(DType::f32, {kRows, 1}, 0.5);
  const Tensor b = Tensor::full(DType::f32, {1, kColumns}, 0.25);
  call.inputs[1] = Tensor::full(DType::f32, {kRows, kColumns}, 0.125);
  std::vector<Tensor> product = call.inputs;
  product[1] = a;
  product.push_back(b);
  const auto wanted = call_internal_op("AdamUpdate", call.inputs, {}, 3);
  for (const int count : {1, 2, 3}) {
    const testing::Threads threads(count);
    const auto plain = call_internal_op("AdamUpdate", call.inputs, {}, 3);
    const auto fused = call_internal_op("AdamProductUpdate", product, {}, 3);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(equal_bits(plain[i], wanted[i])) << count << " threads, output " << i;
      EXPECT_TRUE(equal_bits(fused[i], wanted[i])) << count << " threads, output " << i;
    }
  }
}

TEST(Bf16State, OtherTypesAreRefused) {
  Call call(2, 3);
  call.inputs[5] = call.inputs[5].cast(DType::f16);
  const Error error = error_of([&] { call_internal_op("AdamUpdate", call.inputs, {}, 3); });
  EXPECT_EQ(error.kind(), ErrorKind::type);
  EXPECT_THAT(error.what(), HasSubstr("is f16, the parameter f32; wanted the same, or bf16"));
  call.inputs[5] = call.inputs[5].cast(DType::f64);
  EXPECT_EQ(kind_of([&] { call_internal_op("AdamUpdate", call.inputs, {}, 3); }), ErrorKind::type);
}

}  // namespace
}  // namespace graft
