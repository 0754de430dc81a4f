#include <gmock/gmock.h>

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

Tensor row(const std::vector<float>& values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}
Tensor sizes(std::initializer_list<std::int64_t> list) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(list.size())}, list);
}

/// Of the elements 1, 2, 3, 4.
std::vector<float> to_size(std::int64_t size, const Attributes& attributes) {
  return floats(call_op("Resize", {row({1, 2, 3, 4}), {}, {}, sizes({size})}, attributes)[0]);
}
std::vector<float> by_scale(float scale, const Attributes& attributes) {
  return floats(call_op("Resize", {row({1, 2, 3, 4}), {}, row({scale})}, attributes)[0]);
}

TEST(Resize, LinearByCoordinateTransformation) {
  const auto linear = [](const char* transformation) {
    return Attributes{{"mode", "linear"}, {"coordinate_transformation_mode", transformation}};
  };
  EXPECT_THAT(to_size(8, linear("half_pixel")),
              ElementsAre(1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4));
  EXPECT_THAT(to_size(7, linear("align_corners")), ElementsAre(1, 1.5, 2, 2.5, 3, 3.5, 4));
  EXPECT_THAT(to_size(8, linear("asymmetric")), ElementsAre(1, 1.5, 2, 2.5, 3, 3.5, 4, 4));
  EXPECT_THAT(to_size(1, linear("half_pixel")), ElementsAre(2.5));
  EXPECT_THAT(to_size(1, linear("pytorch_half_pixel")), ElementsAre(1));
}

TEST(Resize, ScalesKeepTheirFraction) {
  // 4 * 0.6 = 2.4 becomes 2 elements, but positions are those of a length of 2.4.
  EXPECT_THAT(
      by_scale(0.6F, {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}}),
      Pointwise(FloatNear(1e-5F), {1.0F, 3.142857F}));
  EXPECT_THAT(by_scale(0.6F, {{"mode", "linear"},
                              {"coordinate_transformation_mode", "half_pixel_symmetric"}}),
              Pointwise(FloatNear(1e-5F), {1.6666667F, 3.3333333F}));
}

TEST(Resize, PlacesThatAreNoNumbersAreOutside) {
  const Tensor roi = Tensor::from<double>({2}, {-1.7e308, 1.7e308});
  for (const char* mode : {"nearest", "linear"}) {
    const Attributes crop{{"mode", mode}, {"coordinate_transformation_mode", "tf_crop_and_resize"}};
    EXPECT_THAT(floats(call_op("Resize", {row({1, 2, 3, 4}), roi, {}, sizes({3})}, crop)[0]),
                ElementsAre(0, 0, 0));
  }
}

/// Between the steps lie 2^30 times 2^31 - 1 elements.
TEST(Resize, StepsThatAreTooLargeAreRefused) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f64, SymShape{1, 1, 1, 2147483647}});
  Value* const wanted = builder.constant(sizes({32768, 32768, 2, 1}));
  const Node* const node = builder.node("Resize", "", {x, nullptr, nullptr, wanted}, 1);
  EXPECT_EQ(kind_of([&] { prepare_kernel(*node, cpu()); }), ErrorKind::shape);
}

TEST(Resize, NearestModes) {
  const auto nearest = [](const char* mode) {
    return to_size(8, {{"nearest_mode", mode}, {"coordinate_transformation_mode", "asymmetric"}});
  };
  EXPECT_THAT(nearest("round_prefer_floor"), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(nearest("round_prefer_ceil"), ElementsAre(1, 2, 2, 3, 3, 4, 4, 4));
  EXPECT_THAT(nearest("floor"), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(nearest("ceil"), ElementsAre(1, 2, 2, 3, 3, 4, 4, 4));
}

TEST(Resize, NearestPositionsAreRoundedAsFloats) {
  // In exact numbers 3 / 0.6F lies a little below 5.
  const Tensor x = row({0, 1, 2, 3, 4, 5, 6});
  EXPECT_THAT(floats(call_op("Resize", {x, {}, row({0.6F})},
                             {{"nearest_mode", "floor"},
                              {"coordinate_transformation_mode", "asymmetric"}})[0]),
              ElementsAre(0, 1, 3, 5));
}

TEST(Resize, CubicCoefficient) {
  // Half way between 2 and 3: (2 + 3) * 0.59375 - (1 + 4) * 0.09375 with a = -0.75.
  EXPECT_THAT(to_size(1, {{"mode", "cubic"}}), ElementsAre(2.5));
  EXPECT_THAT(to_size(2, {{"mode", "cubic"}, {"exclude_outside", 1}}),
              Pointwise(FloatNear(1e-6F), {1.3714286F, 3.6285714F}));
}

TEST(Resize, AntialiasCoversWhatItSkips) {
  // A triangle 2 wide: weights 1/8, 3/8, 3/8, 1/8, where the first lies outside.
  EXPECT_THAT(to_size(2, {{"mode", "linear"}, {"antialias", 1}}), ElementsAre(1.625, 3.375));
  EXPECT_THAT(to_size(2, {{"mode", "linear"}, {"antialias", 1}, {"exclude_outside", 1}}),
              Pointwise(FloatNear(1e-6F), {1.7142857F, 3.2857143F}));
}

TEST(Resize, CropsAndExtrapolates) {
  const Attributes crop{{"mode", "linear"},
                        {"coordinate_transformation_mode", "tf_crop_and_resize"},
                        {"extrapolation_value", 9.0F}};
  EXPECT_THAT(
      floats(call_op("Resize", {row({1, 2, 3, 4}), row({0.5F, 1.5F}), {}, sizes({3})}, crop)[0]),
      ElementsAre(2.5, 4, 9));
}

TEST(Resize, KeepsTheAspectRatio) {
  const Tensor x = Tensor::zeros(DType::f32, {2, 4});
  const auto shape = [&](const char* policy) {
    return call_op("Resize", {x, {}, {}, sizes({7, 8})}, {{"keep_aspect_ratio_policy", policy}})[0]
        .shape();
  };
  EXPECT_EQ(shape("stretch"), (Shape{7, 8}));
  EXPECT_EQ(shape("not_larger"), (Shape{4, 8}));
  EXPECT_EQ(shape("not_smaller"), (Shape{7, 14}));
}

TEST(Resize, GradientAddsUpWhatAnElementGaveTo) {
  const Tensor x = row({1, 2});
  const Tensor dy = row({1, 2, 4, 8});
  EXPECT_THAT(floats(testing::rule_gradients("Resize", {x, {}, {}, sizes({4})}, dy)[0]),
              ElementsAre(3, 12));
  EXPECT_THAT(floats(testing::rule_gradients("Resize", {x, {}, {}, sizes({4})}, dy,
                                             {{"mode", "linear"}})[0]),
              ElementsAre(3.5, 11.5));
}

TEST(Resize, Before11ThereIsOneWay) {
  const Tensor x = row({1, 2, 3, 4});
  EXPECT_THAT(floats(call_old_op("Resize", 10, {x, row({1.5F})})), ElementsAre(1, 1, 2, 3, 3, 4));
  EXPECT_THAT(floats(call_old_op("Resize", 10, {x, row({0.7F})})), ElementsAre(1, 3));
  EXPECT_THAT(floats(call_old_op("Upsample", 9, {x, row({2})}, {{"mode", "linear"}})),
              ElementsAre(1, 1.5, 2, 2.5, 3, 3.5, 4, 4));
  EXPECT_THAT(floats(call_old_op("Upsample", 7, {x}, {{"scales", std::vector<float>{2}}})),
              ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  const Tensor image = Tensor::zeros(DType::f32, {2, 2});
  EXPECT_EQ(kind_of([&] {
              call_old_op("Resize", 10, {image, row({2, 0.5F})});
            }),
            ErrorKind::unsupported);
}

TEST(Resize, RefusesWhatDoesNotFit) {
  const Tensor x = row({1, 2, 3, 4});
  const auto kind = [&](const std::vector<Tensor>& lists, const Attributes& attributes = {}) {
    std::vector<Tensor> inputs{x};
    inputs.insert(inputs.end(), lists.begin(), lists.end());
    return kind_of([&] { call_op("Resize", inputs, attributes); });
  };
  EXPECT_EQ(kind({}), ErrorKind::model);
  EXPECT_EQ(kind({{}, row({2}), sizes({8})}), ErrorKind::model);
  EXPECT_EQ(kind({{}, row({2, 2})}), ErrorKind::shape);
  EXPECT_EQ(kind({{}, row({0})}), ErrorKind::shape);
  EXPECT_EQ(kind({{}, row({-1})}), ErrorKind::shape);
  EXPECT_EQ(kind({{}, row({NAN})}), ErrorKind::shape);
  EXPECT_EQ(kind({{}, row({1e30F})}), ErrorKind::shape);
  EXPECT_EQ(kind({{}, {}, sizes({-1})}), ErrorKind::shape);
  EXPECT_EQ(kind({{}, {}, sizes({8})}, {{"mode", "quadratic"}}), ErrorKind::model);
  EXPECT_EQ(kind({{}, {}, sizes({8})}, {{"nearest_mode", "up"}}), ErrorKind::model);
  EXPECT_EQ(kind({{}, {}, sizes({8})}, {{"axes", std::vector<std::int64_t>{1}}}), ErrorKind::shape);
  EXPECT_EQ(kind({{}, {}, sizes({8})}, {{"coordinate_transformation_mode", "tf_crop_and_resize"}}),
            ErrorKind::model);
  const Tensor empty = Tensor::zeros(DType::f32, {0});
  EXPECT_EQ(kind_of([&] { call_op("Resize", {empty, {}, {}, sizes({3})}); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
