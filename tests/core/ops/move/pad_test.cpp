#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

Tensor list(std::initializer_list<std::int64_t> numbers) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}
Tensor one_to_three() {
  return Tensor::from<float>({3}, {1, 2, 3});
}
std::vector<float> pad(const char* mode, std::int64_t before, std::int64_t after) {
  return floats(call_op("Pad", {one_to_three(), list({before, after})}, {{"mode", mode}})[0]);
}

TEST(Pad, Modes) {
  EXPECT_THAT(pad("constant", 1, 2), ElementsAre(0, 1, 2, 3, 0, 0));
  EXPECT_THAT(pad("edge", 2, 1), ElementsAre(1, 1, 1, 2, 3, 3));
  EXPECT_THAT(pad("reflect", 2, 1), ElementsAre(3, 2, 1, 2, 3, 2));
  EXPECT_THAT(pad("reflect", 0, 5), ElementsAre(1, 2, 3, 2, 1, 2, 3, 2));
  EXPECT_THAT(pad("wrap", 2, 4), ElementsAre(2, 3, 1, 2, 3, 1, 2, 3, 1));
}

TEST(Pad, NegativeAmountsCutOff) {
  EXPECT_THAT(pad("constant", -1, 1), ElementsAre(2, 3, 0));
  EXPECT_THAT(pad("edge", -2, 1), ElementsAre(3, 3));
}

TEST(Pad, ValueAndAxes) {
  const Tensor x = Tensor::from<float>({1, 2}, {1, 2});
  EXPECT_THAT(floats(call_op("Pad", {x, list({1, 0}), Tensor::scalar(7.0F), list({-1})})[0]),
              ElementsAre(7, 1, 2));
}

TEST(Pad, TakesPadsAndValueAsAttributesBefore11) {
  const Attributes attributes{{"pads", std::vector<std::int64_t>{1, 0}}, {"value", 5.0F}};
  EXPECT_THAT(floats(call_old_op("Pad", 7, {one_to_three()}, attributes)), ElementsAre(5, 1, 2, 3));
}

TEST(Pad, RefusesWhatDoesNotFit) {
  const auto kind = [](const std::vector<Tensor>& inputs, const char* mode = "constant") {
    return kind_of([&] { call_op("Pad", inputs, {{"mode", mode}}); });
  };
  const Tensor x = one_to_three();
  EXPECT_EQ(kind({x, list({1})}), ErrorKind::shape);
  EXPECT_EQ(kind({x, list({-2, -2})}), ErrorKind::shape);
  EXPECT_EQ(kind({x, list({-4, 9})}), ErrorKind::shape);
  EXPECT_EQ(kind({x, list({INT64_MAX, INT64_MAX})}), ErrorKind::shape);
  EXPECT_EQ(kind({x, list({INT64_MIN, 0})}), ErrorKind::shape);
  EXPECT_EQ(kind({x, list({1, 1})}, "mirror"), ErrorKind::model);
  EXPECT_EQ(kind({Tensor::zeros(DType::f32, {0}), list({1, 1})}, "edge"), ErrorKind::shape);
}

TEST(PadGrad, AddsUpRepeatedElements) {
  using Ints = std::vector<std::int64_t>;
  const Attributes attributes{
      {"shape", Ints{3}}, {"before", Ints{2}}, {"after", Ints{0}}, {"mode", "edge"}};
  const Tensor dy = Tensor::from<float>({5}, {1, 2, 4, 8, 16});
  EXPECT_THAT(floats(call_internal_op("PadGrad", {dy}, attributes)[0]), ElementsAre(7, 8, 16));
}

}  // namespace
}  // namespace graft
