#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/registry.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;
using testing::OneNode;
using Ints = std::vector<std::int64_t>;

Tensor counted(const Shape& shape, float first = 1) {
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return Tensor::from(shape, values);
}

/// The same by every kernel: oneDNN's and the plain one.
std::vector<std::vector<float>> by_all(std::string_view op, std::string_view domain,
                                       const std::vector<Tensor>& inputs, Attributes attributes,
                                       int outputs = 1, int output = 0) {
  const OneNode one(op, domain, inputs, outputs, std::move(attributes));
  std::vector<std::vector<float>> results;
  for (const PreparedKernel& kernel : prepare_all_kernels(*one.node, cpu())) {
    const auto found = evaluate(kernel, *one.node, inputs);
    results.push_back(floats(found[static_cast<std::size_t>(output)]));
  }
  return results;
}

TEST(Conv, IsACorrelationNotAConvolution) {
  // The first tap meets the first element: the kernel is not mirrored.
  const Tensor x = counted({1, 1, 3, 3});
  const Tensor w = Tensor::from<float>({1, 1, 2, 2}, {1, 10, 100, 1000});
  for (const auto& y : by_all("Conv", "", {x, w}, {})) {
    EXPECT_THAT(y, ElementsAre(5421, 6532, 8754, 9865));
  }
}

TEST(Conv, AddsBiasAndSumsChannels) {
  const Tensor x = counted({1, 2, 1, 2});
  const Tensor w = Tensor::from<float>({2, 2, 1, 1}, {1, 10, 2, 20});
  const Tensor bias = Tensor::from<float>({2}, {0.5F, -0.5F});
  for (const auto& y : by_all("Conv", "", {x, w, bias}, {})) {
    EXPECT_THAT(y, ElementsAre(31.5F, 42.5F, 61.5F, 83.5F));
  }
}

TEST(Conv, PadsAreBeginsThenEnds) {
  const Tensor x = counted({1, 1, 2, 2});
  const Tensor w = Tensor::full(DType::f32, {1, 1, 2, 2}, 1);
  // One row above, two columns to the right.
  for (const auto& y : by_all("Conv", "", {x, w}, {{"pads", Ints{1, 0, 0, 2}}})) {
    EXPECT_THAT(y, ElementsAre(3, 2, 0, 10, 6, 0));
  }
}

/// Images of 8 x 8, all 0.5, and a weight of 3 x 3, all 0.25, but for one number.
class OneLargeNumber {
 public:
  OneLargeNumber(float number, bool is_in_weight) : number_(number), is_in_weight_(is_in_weight) {
    // Of x image 1, row 3, column 3, channel 35, in rows of channels; of w output 0, input 0, the
    // tap in the middle.
    constexpr std::size_t kAt = ((kSide + 3) * kSide + 3) * kChannels + 35;
    (is_in_weight ? w_.values<float>()[4] : x_.values<float>()[kAt]) = number;
  }

  /// Of Conv, or of ConvInputGrad, whose taps lie around a target in the same way: results that
  /// meet the number are infinite or of its size, the others sums of 0.125.
  void expect_results(bool is_gradient, bool is_weight_known) const {
    Attributes attributes{{"pads", Ints{1, 1, 1, 1}}};
    if (is_gradient) attributes.set({"shape", Ints{kImages, kChannels, kSide, kSide}});
    const OneNode one(is_gradient ? "ConvInputGrad" : "Conv", is_gradient ? kInternalDomain : "",
                      {x_, w_}, 1, attributes);
    one.node->input(0)->is_variable = true;
    one.node->input(1)->is_variable = !is_weight_known;
    for (Value* const value : {one.node->input(0), one.node->output()}) {
      value->layout = Layout::channels_last;
    }
    for (const PreparedKernel& kernel : prepare_all_kernels(*one.node, cpu())) {
      const std::vector<float> y = floats(evaluate(kernel, *one.node, {x_, w_})[0]);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const float wanted = wanted_at(i);
        if (std::isinf(wanted)) {
          ASSERT_EQ(y[i], wanted) << kernel.name << " at " << i;
        } else {
          ASSERT_NEAR(y[i] / wanted, 1, 1e-6) << kernel.name << " at " << i;
        }
      }
    }
  }

 private:
  static constexpr std::int64_t kImages = 8;
  static constexpr std::int64_t kSide = 8;
  static constexpr std::int64_t kChannels = 64;

  float wanted_at(std::size_t i) const {
    const std::size_t position = i / kChannels;
    const auto row = static_cast<std::int64_t>(position / kSide % kSide);
    const auto column = static_cast<std::int64_t>(position % kSide);
    const bool is_near =
        position / (kSide * kSide) == 1 && std::abs(row - 3) <= 1 && std::abs(column - 3) <= 1;
    if (is_in_weight_ ? i % kChannels == 0 : is_near) {
      return number_ * (is_in_weight_ ? 0.5F : 0.25F);
    }
    const auto met = [](std::int64_t at) { return at == 0 || at == kSide - 1 ? 2 : 3; };
    return static_cast<float>(met(row) * met(column) * kChannels) * 0.125F;
  }

  float number_;
  bool is_in_weight_;
  Tensor x_ = Tensor::full(DType::f32, {kImages, kChannels, kSide, kSide}, 0.5);
  Tensor w_ = Tensor::full(DType::f32, {kChannels, kChannels, 3, 3}, 0.25);
};

/// Numbers may be split into parts for the processor's tiles: of an infinite one they would make
/// NaN. Or sources are added up before they are multiplied: a large one must not show, by its
/// rounding, in what does not meet it.
TEST(Conv, KeepsLargeNumbersWhereTheyAreMetInRowsOfChannels) {
  for (const float number :
       {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max(), 1e9F}) {
    for (const bool is_in_weight : {false, true}) {
      const OneLargeNumber images(number, is_in_weight);
      for (const bool is_gradient : {false, true}) {
        images.expect_results(is_gradient, false);
        images.expect_results(is_gradient, true);
      }
    }
  }
}

TEST(ConvWeightGrad, KeepsInfinitiesInRowsOfChannels) {
  constexpr std::int64_t kSide = 9;
  constexpr std::int64_t kChannels = 64;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool is_in_dy : {false, true}) {
      Tensor x = Tensor::full(DType::f32, {8, kChannels, kSide, kSide}, 0.5);
      Tensor dy = Tensor::full(DType::f32, {8, kChannels, kSide, kSide}, 0.25);
      // Image 1, column 3, channel 35, in rows of channels. The last row of x is none that the
      // first taps meet, nor may kernels that fill up positions.
      const std::int64_t row = is_in_dy ? 3 : kSide - 1;
      const std::int64_t at = ((kSide + row) * kSide + 3) * kChannels + 35;
      (is_in_dy ? dy : x).values<float>()[at] = kInfinity;
      const std::vector<Tensor> inputs{x.cast(dtype), dy.cast(dtype)};
      const OneNode one("ConvWeightGrad", kInternalDomain, inputs, 1,
                        {{"shape", Ints{kChannels, kChannels, 3, 3}}, {"pads", Ints{1, 1, 1, 1}}});
      for (Value* const value : one.node->inputs()) value->layout = Layout::channels_last;
      for (const PreparedKernel& kernel : prepare_all_kernels(*one.node, cpu())) {
        const std::vector<float> dw =
            floats(evaluate(kernel, *one.node, inputs)[0].cast(DType::f32));
        for (std::size_t i = 0; i < dw.size(); ++i) {
          const bool meets =
              is_in_dy ? i / 9 / kChannels == 35 : i / 9 % kChannels == 35 && i % 9 >= 3;
          ASSERT_EQ(dw[i] == kInfinity, meets) << kernel.name << " at " << i << ": " << dw[i];
          ASSERT_FALSE(std::isnan(dw[i])) << kernel.name << " at " << i;
        }
      }
    }
  }
}

TEST(Conv, SamePaddingPutsTheOddElementLastOrFirst) {
  const Tensor x = counted({1, 1, 3});
  const Tensor w = Tensor::from<float>({1, 1, 2}, {1, 10});
  for (const auto& y : by_all("Conv", "", {x, w}, {{"auto_pad", "SAME_UPPER"}})) {
    EXPECT_THAT(y, ElementsAre(21, 32, 3));
  }
  for (const auto& y : by_all("Conv", "", {x, w}, {{"auto_pad", "SAME_LOWER"}})) {
    EXPECT_THAT(y, ElementsAre(10, 21, 32));
  }
  for (const auto& y : by_all("Conv", "", {x, w}, {{"auto_pad", "VALID"}})) {
    EXPECT_THAT(y, ElementsAre(21, 32));
  }
}

TEST(Conv, GroupsSeeOnlyTheirChannels) {
  const Tensor x = counted({1, 4, 1});
  const Tensor w = Tensor::from<float>({2, 2, 1}, {1, 10, 100, 1000});
  for (const auto& y : by_all("Conv", "", {x, w}, {{"group", 2}})) {
    EXPECT_THAT(y, ElementsAre(21, 4300));
  }
}

TEST(Conv, DilationAndStride) {
  const Tensor x = counted({1, 1, 7});
  const Tensor w = Tensor::from<float>({1, 1, 2}, {1, 10});
  const Attributes attributes{{"dilations", Ints{2}}, {"strides", Ints{3}}};
  for (const auto& y : by_all("Conv", "", {x, w}, attributes)) EXPECT_THAT(y, ElementsAre(31, 64));
}

TEST(Conv, WithoutImagesPlanesMayBeOfAnySize) {
  constexpr std::int64_t kMost = 2147483647;
  const Tensor x = Tensor::zeros(DType::f32, {0, 1, kMost, kMost});
  EXPECT_EQ(call_op("Conv", {x, Tensor::zeros(DType::f32, {1, 1, 2, 2})})[0].shape(),
            (Shape{0, 1, kMost - 1, kMost - 1}));
}

/// All taps meet padding.
TEST(Conv, DilationsMayBeLongerThanAnyImage) {
  const Tensor x = Tensor::full(DType::f32, {1, 16, 4, 4}, 1.0);
  const Tensor w = Tensor::full(DType::f32, {16, 16, 2, 2}, 1.0);
  const Attributes attributes{{"dilations", Ints{2147483647, 1}},
                              {"pads", Ints{1073741824, 0, 1073741824, 0}}};
  for (const auto& y : by_all("Conv", "", {x, w}, attributes)) {
    EXPECT_EQ(y, std::vector<float>(y.size(), 0.0F));
  }
}

TEST(ConvWeightGrad, DilationsMayBeLongerThanAnyImage) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const std::vector<Tensor> inputs{Tensor::full(DType::f32, {1, 16, 8, 4}, 1.0).cast(dtype),
                                     Tensor::full(DType::f32, {1, 16, 9, 3}, 1.0).cast(dtype)};
    const OneNode one("ConvWeightGrad", kInternalDomain, inputs, 1,
                      {{"shape", Ints{16, 16, 2, 2}},
                       {"dilations", Ints{2147483647, 1}},
                       {"pads", Ints{1073741824, 0, 1073741824, 0}}});
    for (Value* const value : one.node->inputs()) value->layout = Layout::channels_last;
    for (const PreparedKernel& kernel : prepare_all_kernels(*one.node, cpu())) {
      const std::vector<float> dw = floats(evaluate(kernel, *one.node, inputs)[0].cast(DType::f32));
      EXPECT_EQ(dw, std::vector<float>(dw.size(), 0.0F)) << kernel.name;
    }
  }
}

TEST(Conv, WithoutInputChannelsOnlyTheBiasIsLeft) {
  const auto y =
      call_op("Conv", {Tensor::zeros(DType::f32, {1, 0, 2}), Tensor::zeros(DType::f32, {2, 0, 1}),
                       Tensor::from<float>({2}, {3, 4})});
  EXPECT_THAT(floats(y[0]), ElementsAre(3, 3, 4, 4));
}

TEST(ConvInputGrad, ScattersAndLeavesWhatNoWindowMet) {
  // Stride 2 over 4 elements with a kernel of 1: elements 1 and 3 get nothing.
  const Tensor dy = Tensor::from<float>({1, 1, 2}, {5, 7});
  const Tensor w = Tensor::from<float>({1, 1, 1}, {2});
  const Attributes attributes{{"shape", Ints{1, 1, 4}}, {"strides", Ints{2}}};
  for (const auto& dx : by_all("ConvInputGrad", kInternalDomain, {dy, w}, attributes)) {
    EXPECT_THAT(dx, ElementsAre(10, 0, 14, 0));
  }
}

TEST(ConvInputGrad, AddsToAnAddend) {
  const Tensor dy = Tensor::from<float>({1, 1, 2}, {5, 7});
  const Tensor w = Tensor::from<float>({1, 1, 1}, {2});
  const Tensor addend = Tensor::from<float>({1, 1, 4}, {100, 200, 300, 400});
  const Attributes attributes{{"shape", Ints{1, 1, 4}}, {"strides", Ints{2}}};
  for (const auto& dx : by_all("ConvInputGrad", kInternalDomain, {dy, w, addend}, attributes)) {
    EXPECT_THAT(dx, ElementsAre(110, 200, 314, 400));
  }
  const Tensor one = Tensor::from<float>({1}, {1});
  EXPECT_EQ(kind_of([&] {
              call_internal_op("ConvInputGrad", {dy, w, one}, attributes);
            }),
            ErrorKind::shape);
}

/// What is computed again must not add to an addend twice.
TEST(ConvInputGrad, AddsOnceInTheMemoryOfTheAddend) {
  const Shape shape{8, 64, 8, 8};
  Tensor dy = Tensor::full(DType::f32, shape, 0.5);
  dy.values<float>()[((3 * 8 + 2) * 8 + 3) * 64 + 5] = std::numeric_limits<float>::infinity();
  const std::vector<Tensor> inputs{dy, Tensor::full(DType::f32, {64, 64, 3, 3}, 0.25),
                                   Tensor::full(DType::f32, shape, 100)};
  const OneNode one("ConvInputGrad", kInternalDomain, inputs, 1,
                    {{"shape", Ints{8, 64, 8, 8}}, {"pads", Ints{1, 1, 1, 1}}});
  for (Value* const value : {one.node->input(0), one.node->input(2), one.node->output()}) {
    value->layout = Layout::channels_last;
  }
  for (const PreparedKernel& kernel : prepare_all_kernels(*one.node, cpu())) {
    const std::vector<float> apart = floats(evaluate(kernel, *one.node, inputs)[0]);
    Tensor shared = inputs[2].clone();
    const Tensor workspace =
        Tensor::empty(DType::u8, {static_cast<std::int64_t>(kernel.workspace_bytes)});
    const std::vector<const void*> read{dy.data(), inputs[1].data(), shared.data()};
    const std::vector<void*> written{shared.data()};
    const RunState state;
    kernel.run({read, written, workspace.data(), &state});
    EXPECT_EQ(floats(shared), apart) << kernel.name;
    EXPECT_EQ(std::ranges::count(apart, std::numeric_limits<float>::infinity()), 9 * 64);
  }
}

TEST(ConvWeightGrad, CorrelatesInputAndGradient) {
  const Tensor x = counted({1, 1, 3});
  const Tensor dy = Tensor::from<float>({1, 1, 2}, {10, 100});
  const Attributes attributes{{"shape", Ints{1, 1, 2}}};
  for (const auto& dw : by_all("ConvWeightGrad", kInternalDomain, {x, dy}, attributes)) {
    EXPECT_THAT(dw, ElementsAre(210, 320));
  }
  for (const auto& db : by_all("ConvWeightGrad", kInternalDomain, {x, dy}, attributes, 2, 1)) {
    EXPECT_THAT(db, ElementsAre(110));
  }
}

/// Sums of small whole numbers, the same in any order: what one kernel writes beside its memory, or
/// threads into each other's, shows.
TEST(ConvWeightGrad, OfFewChannelsByStridesIsTheSameByEveryKernel) {
  const auto small = [](const Shape& shape, int modulus) {
    Tensor tensor = counted(shape);
    for (float& value : tensor.values<float>()) value = std::fmod(value, modulus) - 2;
    return tensor;
  };
  for (const std::int64_t channels : {1, 3, 8, 15, 17}) {
    const Tensor x = small({1, channels, 112, 112}, 7);
    const Tensor dy = small({1, 3, 56, 56}, 5);
    const Attributes attributes{{"shape", Ints{3, channels, 1, 1}}, {"strides", Ints{2, 2}}};
    const auto results = by_all("ConvWeightGrad", kInternalDomain, {x, dy}, attributes);
    for (const auto& dw : results) EXPECT_EQ(dw, results.back()) << channels << " channels";
  }
}

/// The type that inference gives a Conv of these symbolic shapes.
std::optional<SymShape> inferred(const SymShape& x, const SymShape& w, Attributes attributes = {}) {
  Graph graph;
  Builder builder(graph);
  Value* const data = graph.add_input("x", {DType::f32, x});
  Value* const weight = graph.add_input("w", {DType::f32, w});
  return builder.node("Conv", "", {data, weight}, 1, std::move(attributes))->output()->shape();
}

TEST(Conv, KeepsSymbolsWhereTheWindowKeepsSizes) {
  const SymShape x{Dim("batch"), 3, Dim("height"), 5};
  const SymShape same = *inferred(x, {4, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}});
  EXPECT_EQ(same, (SymShape{Dim("batch"), 4, Dim("height"), 5}));
  EXPECT_EQ(*inferred(x, {4, 3, 3, 3}), (SymShape{Dim("batch"), 4, Dim(), 3}));
  EXPECT_EQ(*inferred(x, {Dim("m"), 3, 3, Dim()}),
            (SymShape{Dim("batch"), Dim("m"), Dim(), Dim()}));
}

TEST(Conv, RefusesWhatDoesNotFit) {
  const SymShape x{1, 4, 5, 5};
  const auto kind = [&](const SymShape& w, Attributes attributes = {}) {
    return kind_of([&] { inferred(x, w, std::move(attributes)); });
  };
  EXPECT_EQ(kind({2, 3, 3, 3}), ErrorKind::shape);                                // channels
  EXPECT_EQ(kind({2, 4, 3}), ErrorKind::shape);                                   // rank
  EXPECT_EQ(kind({2, 4, 6, 3}), ErrorKind::shape);                                // window
  EXPECT_EQ(kind({2, 4, 0, 3}), ErrorKind::shape);                                // empty kernel
  EXPECT_EQ(kind({3, 2, 3, 3}, {{"group", 2}}), ErrorKind::shape);                // 3 / 2
  EXPECT_EQ(kind({2, 4, 3, 3}, {{"group", 0}}), ErrorKind::shape);                //
  EXPECT_EQ(kind({2, 4, 3, 3}, {{"strides", Ints{0, 1}}}), ErrorKind::shape);     //
  EXPECT_EQ(kind({2, 4, 3, 3}, {{"strides", Ints{1}}}), ErrorKind::shape);        //
  EXPECT_EQ(kind({2, 4, 3, 3}, {{"dilations", Ints{1, -1}}}), ErrorKind::shape);  //
  EXPECT_EQ(kind({2, 4, 3, 3}, {{"pads", Ints{0, 0, 0, -1}}}), ErrorKind::shape);
  EXPECT_EQ(kind({2, 4, 3, 3}, {{"pads", Ints{0, 0, 0, 1LL << 40}}}), ErrorKind::shape);
  EXPECT_EQ(kind({2, 4, 3, 3}, {{"kernel_shape", Ints{3, 2}}}), ErrorKind::shape);
  EXPECT_EQ(kind({2, 4, 3, 3}, {{"auto_pad", "SAME"}}), ErrorKind::model);
  EXPECT_EQ(kind({2, 4, 3, 3}, {{"auto_pad", 1}}), ErrorKind::type);
}

TEST(Conv, FourSpatialAxesHaveNoKernel) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 1, 1, 1, 1, 1});
  const Error error = error_of([&] { call_op("Conv", {x, x}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
}

TEST(ConvInputGrad, RefusesShapesThatDoNotBelongTogether) {
  const Tensor dy = Tensor::zeros(DType::f32, {1, 1, 3});
  const Tensor w = Tensor::zeros(DType::f32, {1, 1, 2});
  const auto kind = [&](Ints shape) {
    return kind_of([&] { call_internal_op("ConvInputGrad", {dy, w}, {{"shape", shape}}); });
  };
  EXPECT_EQ(kind({1, 1, 3}), ErrorKind::shape);  // only two windows fit
  EXPECT_EQ(kind({1, 2, 4}), ErrorKind::shape);
  EXPECT_EQ(kind({1, 1, -4}), ErrorKind::shape);
  EXPECT_EQ(kind({}), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
