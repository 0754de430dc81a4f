#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using ::graft::testing::call_internal_op;
using ::graft::testing::floats;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<Graph> body_with(int inputs) {
  auto body = std::make_shared<Graph>("body");
  for (int i = 0; i < inputs; ++i) body->add_input(text("x", i), {});
  return body;
}

Value* link(Graph& body, std::string_view op, const std::vector<std::string>& inputs,
            const std::string& output) {
  std::vector<Value*> values;
  for (const std::string& input : inputs) values.push_back(body.find(input));
  return body.add_node(op, "", values, {output})->output();
}

std::vector<Tensor> call_chain(const std::shared_ptr<Graph>& body,
                               const std::vector<Tensor>& inputs) {
  return call_internal_op("ElementwiseChain", inputs, {{"body", body}},
                          static_cast<int>(body->outputs().size()));
}

/// relu(x0 x1 + x2), a row and a number broadcasting.
TEST(ElementwiseChain, ComputesItsLinksInOrder) {
  const auto body = body_with(3);
  link(*body, "Mul", {"x0", "x1"}, "product");
  link(*body, "Add", {"product", "x2"}, "sum");
  body->add_output(link(*body, "Relu", {"sum"}, "y"));
  const std::vector<Tensor> found =
      call_chain(body, {Tensor::from<float>({2, 2}, {1, 2, 3, 4}),
                        Tensor::from<float>({2}, {2, -1}), Tensor::scalar(1.0F)});
  EXPECT_EQ(found[0].shape(), (Shape{2, 2}));
  EXPECT_THAT(floats(found[0]), ElementsAre(3, 0, 7, 0));
}

TEST(ElementwiseChain, GivesWhatItsBodyGivesInThatOrder) {
  const auto body = body_with(1);
  body->add_initializer("three", Tensor::scalar(3.0F));
  Value* const tripled = link(*body, "Mul", {"x0", "three"}, "tripled");
  body->add_output(link(*body, "Sub", {"tripled", "x0"}, "doubled"));
  body->add_output(tripled);
  const std::vector<Tensor> found = call_chain(body, {Tensor::from<float>({3}, {1, 2, -4})});
  EXPECT_THAT(floats(found[0]), ElementsAre(2, 4, -8));
  EXPECT_THAT(floats(found[1]), ElementsAre(3, 6, -12));
}

TEST(ElementwiseChain, ElementTypesFollowFromTheOperands) {
  const auto body = body_with(2);
  link(*body, "Less", {"x0", "x1"}, "is_less");
  body->add_output(link(*body, "Where", {"is_less", "x0", "x1"}, "least"));
  const std::vector<Tensor> found = call_chain(
      body, {Tensor::from<std::int64_t>({2}, {1, 5}), Tensor::from<std::int64_t>({2}, {3, 2})});
  const auto values = found[0].values<const std::int64_t>();
  EXPECT_THAT(std::vector(values.begin(), values.end()), ElementsAre(1, 2));
}

std::string refusal(const std::shared_ptr<Graph>& body, const std::vector<Tensor>& inputs) {
  return error_of([&] { call_chain(body, inputs); }).what();
}

TEST(ElementwiseChain, RefusesWhatIsNoChain) {
  const Tensor x = Tensor::from<float>({2, 1}, {1, 2});
  const auto two_shapes = body_with(2);
  link(*two_shapes, "Neg", {"x0"}, "column");
  two_shapes->add_output(link(*two_shapes, "Add", {"column", "x1"}, "y"));
  EXPECT_THAT(refusal(two_shapes, {x, Tensor::from<float>({3}, {1, 2, 3})}),
              HasSubstr("its links have the shapes [2,1] ('column') and [2,3] ('y')"));
  EXPECT_THAT(refusal(two_shapes, {x}), HasSubstr("its body has 2 inputs, wanted 1"));

  const auto no_result = body_with(1);
  no_result->add_output(no_result->inputs().front());
  EXPECT_THAT(refusal(no_result, {x}), HasSubstr("its output 'x0' is no result"));

  const auto not_elementwise = body_with(1);
  not_elementwise->add_output(link(*not_elementwise, "Softmax", {"x0"}, "y"));
  EXPECT_THAT(refusal(not_elementwise, {x}), HasSubstr("no cpu kernel for ai.graft."));

  EXPECT_THAT(error_of([&] { call_internal_op("ElementwiseChain", {x}); }).what(),
              HasSubstr("it has no body"));
}

TEST(UpdateChain, MakesWhatItsVariablesAre) {
  const auto body = body_with(2);
  body->add_output(link(*body, "Add", {"x0", "x1"}, "sum"));
  const auto call = [&](const Tensor& x0, const Tensor& x1) {
    return call_internal_op("UpdateChain", {x0, x1}, {{"body", body}});
  };
  const Tensor row = Tensor::from<float>({2}, {1, 2});
  EXPECT_THAT(floats(call(row, Tensor::scalar(3.0F)).front()), ElementsAre(4, 5));
  const Error error = error_of([&] { call(row, Tensor::zeros(DType::f32, {3, 2})); });
  EXPECT_EQ(error.kind(), ErrorKind::shape);
  EXPECT_THAT(error.what(), HasSubstr("its body makes f32[3,2] of variable"));
}

}  // namespace
}  // namespace graft
