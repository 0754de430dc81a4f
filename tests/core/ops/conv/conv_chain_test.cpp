#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

/// relu(conv + x0)
std::shared_ptr<Graph> residual_body() {
  auto body = std::make_shared<Graph>("body");
  Value* const other = body->add_input("other", {});
  Value* const conv = body->add_input("conv", {});
  Value* const sum = body->add_node("Add", "", {conv, other}, {"sum"})->output();
  body->add_output(body->add_node("Relu", "", {sum}, {"y"})->output());
  return body;
}

Tensor filled(const Shape& shape, double value) {
  return Tensor::full(DType::f32, shape, value);
}

Attributes attributes_of(const std::shared_ptr<Graph>& body, std::int64_t place) {
  return {{"pads", Ints{1, 1, 1, 1}}, {"body", body}, {"result", place}};
}

/// A large image whose channels lie last, a small weight, and what is added.
struct Large {
  Large() {
    for (const int input : {0, 3}) {
      one.node->input(input)->layout = Layout::channels_last;
    }
    one.node->output()->layout = Layout::channels_last;
  }
  std::vector<float> run() const {
    const PreparedKernel kernel = prepare_kernel(*one.node, cpu());
    EXPECT_EQ(kernel.name, "stripes");
    const std::vector<Tensor> found = evaluate(kernel, *one.node, tensors);
    const auto values = found[0].values<const float>();
    return {values.begin(), values.end()};
  }

  std::vector<Tensor> tensors{filled({1, 8, 160, 150}, 0.5), filled({24, 8, 3, 3}, 0.25),
                              filled({24}, -8.0), filled({1, 24, 160, 150}, 1.0)};
  testing::OneNode one{"ConvChain", kInternalDomain, tensors, 1, attributes_of(residual_body(), 1)};
};

/// 8 channels of 9 taps, 6 at an edge and 4 in a corner, of 1/8 each; then -8 + 1.
TEST(ConvChain, StripesMeetTheirNeighboursRows) {
  const std::vector<float> y = Large().run();
  for (std::size_t h = 0; h < 160; ++h) {
    for (std::size_t w = 0; w < 150; ++w) {
      const int rows = h == 0 || h == 159 ? 2 : 3;
      const int columns = w == 0 || w == 149 ? 2 : 3;
      const auto wanted = static_cast<float>(std::max(0, rows * columns - 7));
      ASSERT_FLOAT_EQ(y[(h * 150 + w) * 24 + 23], wanted) << h << ", " << w;
    }
  }
}

/// The field's fused convolutions make it 0.
TEST(ConvChain, NotANumberPassesThroughItsRectifier) {
  Large large;
  large.tensors[0].values<float>()[40 * 150 * 8] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = large.run();
  EXPECT_EQ(std::ranges::count_if(y, [](float one) { return std::isnan(one); }), 3 * 2 * 24);
}

TEST(ConvChain, ThreadsGiveTheSameBits) {
  const int before = thread_count();
  set_thread_count(1);
  const std::vector<float> alone = Large().run();
  set_thread_count(3);
  const std::vector<float> together = Large().run();
  set_thread_count(before);
  EXPECT_EQ(alone, together);
}

TEST(ConvChain, SaysWhatDoesNotFit) {
  const auto body = residual_body();
  const auto call = [&](const Shape& operand, std::int64_t place) {
    return error_of([&] {
      testing::call_internal_op(
          "ConvChain",
          {filled({1, 2, 4, 4}, 1), filled({3, 2, 3, 3}, 1), Tensor(), filled(operand, 1)},
          attributes_of(body, place));
    });
  };
  EXPECT_THAT(call({1, 3, 1, 1}, 1).what(), HasSubstr("operand 3 is [1,3,1,1], wanted [1,3,4,4]"));
  EXPECT_THAT(call({1, 3, 4, 4}, 2).what(), HasSubstr("'result' is 2, wanted"));
  EXPECT_EQ(kind_of([&] {
              testing::call_internal_op("ConvChain",
                                        {filled({1, 2, 4, 4}, 1), filled({3, 2, 3, 3}, 1)},
                                        attributes_of(body, 0));
            }),
            ErrorKind::model);
}

}  // namespace
}  // namespace graft
