#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "core/ops/signal/fft.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"
#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::floats;
using ::testing::Pointwise;

Tensor number(std::int64_t value) {
  return Tensor::scalar(value);
}
auto near(const std::vector<float>& values) {
  return Pointwise(FloatNear(1e-5F), values);
}

TEST(Fft, AgreesWithTheSumForEveryLength) {
  for (std::int64_t n = 1; n <= 40; ++n) {
    std::vector<ComplexNumber> x;
    for (std::int64_t i = 0; i < n; ++i) {
      x.push_back({std::sin(static_cast<double>(3 * i + 1)), std::cos(static_cast<double>(i * i))});
    }
    std::vector<ComplexNumber> y = x;
    const Fft fft(n);
    std::vector<ComplexNumber> scratch(static_cast<std::size_t>(fft.scratch_size()));
    fft.run(y.data(), scratch.data());
    for (std::int64_t k = 0; k < n; ++k) {
      ComplexNumber sum;
      for (std::int64_t i = 0; i < n; ++i) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
        const ComplexNumber& one = x[static_cast<std::size_t>(i)];
        sum.re += one.re * std::cos(angle) - one.im * std::sin(angle);
        sum.im += one.re * std::sin(angle) + one.im * std::cos(angle);
      }
      EXPECT_NEAR(y[static_cast<std::size_t>(k)].re, sum.re, 1e-12) << n << " " << k;
      EXPECT_NEAR(y[static_cast<std::size_t>(k)].im, sum.im, 1e-12) << n << " " << k;
    }
  }
}

TEST(Dft, OfThreeNumbers) {
  const Tensor x = Tensor::from<float>({3, 1}, {1, 2, 4});
  const float r = std::sqrt(3.0F);
  EXPECT_THAT(floats(call_op("DFT", {x})[0]), near({7, 0, -2, r, -2, -r}));
  EXPECT_THAT(floats(call_op("DFT", {x}, {{"onesided", 1}})[0]), near({7, 0, -2, r}));
  const Tensor half = Tensor::from<float>({2, 2}, {7, 0, -2, r});
  EXPECT_THAT(floats(call_op("DFT", {half, number(3)}, {{"inverse", 1}, {"onesided", 1}})[0]),
              near({1, 2, 4}));
}

TEST(Dft, TheAxisWasAnAttributeBefore20) {
  const Tensor x = Tensor::from<float>({1, 2, 2, 1}, {1, 2, 3, 5});
  EXPECT_THAT(floats(call_old_op("DFT", 17, {x})), near({4, 0, 7, 0, -2, 0, -3, 0}));
  EXPECT_THAT(floats(call_op("DFT", {x})[0]), near({3, 0, -1, 0, 8, 0, -2, 0}));
}

TEST(Dft, RefusesWhatDoesNotFit) {
  const auto kind = [](const Shape& x, std::int64_t length, std::int64_t axis) {
    return kind_of([&] {
      call_op("DFT", {Tensor::zeros(DType::f32, x), number(length), number(axis)});
    });
  };
  EXPECT_EQ(kind({4, 3}, 4, 0), ErrorKind::shape);
  EXPECT_EQ(kind({4, 1}, 0, 0), ErrorKind::shape);
  EXPECT_EQ(kind({4, 1}, INT64_MAX, 0), ErrorKind::shape);
  EXPECT_EQ(kind({4, 1}, 4, 1), ErrorKind::shape);
  EXPECT_EQ(kind({4, 1}, 4, 2), ErrorKind::shape);
  const Tensor half = Tensor::zeros(DType::f32, {0, (INT64_C(1) << 62) + 2, 1});
  const Attributes real{{"inverse", 1}, {"onesided", 1}};
  const std::string refused = error_of([&] { call_op("DFT", {half, {}, number(1)}, real); }).what();
  EXPECT_THAT(refused, ::testing::HasSubstr("overflows 64 bits"));
}

TEST(Dft, ALengthFromAFileMustNotFillTheMemory) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 1});
  EXPECT_EQ(kind_of([&] {
              call_op("DFT", {x, number(INT64_C(1) << 30)});
            }),
            ErrorKind::unsupported);
  EXPECT_EQ(kind_of([&] { call_op("HannWindow", {number(INT64_C(1) << 30)}); }),
            ErrorKind::unsupported);
}

TEST(Dft, NorMustThatOfAGradient) {
  const std::int64_t length = INT64_C(1) << 30;
  const Tensor x = Tensor::zeros(DType::f32, {0, 3, 2});
  const Tensor dy = Tensor::zeros(DType::f32, {0, length, 1});
  EXPECT_EQ(kind_of([&] {
              testing::rule_gradients("DFT", {x, number(length), number(1)}, dy,
                                      {{"inverse", 1}, {"onesided", 1}});
            }),
            ErrorKind::unsupported);
}

TEST(Stft, OfTwoFrames) {
  const Tensor signal = Tensor::from<float>({1, 3, 1}, {1, 2, 4});
  const Tensor window = Tensor::from<float>({2}, {1, 0.5F});
  EXPECT_THAT(floats(call_op("STFT", {signal, number(1), window})[0]),
              near({2, 0, 0, 0, 4, 0, 0, 0}));
  EXPECT_EQ(kind_of([&] {
              call_op("STFT", {signal, number(1), {}, number(4)});
            }),
            ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { call_op("STFT", {signal, number(0), window}); }), ErrorKind::shape);
}

TEST(Windows, OfFourElements) {
  EXPECT_THAT(floats(call_op("HannWindow", {number(4)})[0]), near({0, 0.5F, 1, 0.5F}));
  EXPECT_THAT(floats(call_op("HannWindow", {number(3)}, {{"periodic", 0}})[0]), near({0, 1, 0}));
  EXPECT_THAT(floats(call_op("HannWindow", {number(1)}, {{"periodic", 0}})[0]), ElementsAre(1));
  EXPECT_THAT(floats(call_op("BlackmanWindow", {number(4)})[0]), near({0, 0.34F, 1, 0.34F}));
  EXPECT_THAT(floats(call_op("HammingWindow", {number(2)})[0]), near({4.0F / 46, 1}));
  EXPECT_EQ(kind_of([] { call_op("HannWindow", {number(-1)}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] {
              call_op("HannWindow", {number(4)}, {{"output_datatype", 8}});
            }),
            ErrorKind::type);
}

TEST(MelWeightMatrix, RefusesASampleRateOfZero) {
  EXPECT_EQ(kind_of([] {
              call_op("MelWeightMatrix", {number(8), number(16), number(0), Tensor::scalar(0.0F),
                                          Tensor::scalar(100.0F)});
            }),
            ErrorKind::argument);
}

}  // namespace
}  // namespace graft
