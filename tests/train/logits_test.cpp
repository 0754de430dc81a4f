// Losses of logits find them behind a Softmax or Sigmoid at the end of a model.
#include "train/logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/ops/builder.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

/// What follows x w: the end of the model.
using Ending = std::function<Expr(const Expr& scores)>;

/// scores = x w with x [N,3,2], w [2,4].
Model model_with(const Ending& ending, std::int64_t opset = 17) {
  Model model;
  model.set_opset("", opset);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{2, 3, 2}}));
  const Expr w = builder.expr(graph.add_initializer("w", test::random_tensor({2, 4}, 3)));
  graph.add_output(ending(matmul(x, w)).value());
  return model;
}

std::vector<float> losses(Model model, const Loss& loss, const Tensor& target) {
  TrainStep step(model, {.loss = loss, .optimizer = SGD{.lr = 0.5F}});
  std::vector<float> losses;
  for (int i = 0; i < 4; ++i) {
    losses.push_back(step.run({test::random_tensor({2, 3, 2}, 5)}, target));
  }
  return losses;
}

Expr as_is(const Expr& scores) {
  return scores;
}
Expr softmax(const Expr& scores) {
  return call("Softmax", {scores}, {{"axis", -1}});
}

const Tensor kTokens = test::cyclic_labels(6, 4).reshaped({2, 3});

TEST(Logits, ASoftmaxAtTheEndChangesNoLoss) {
  const auto wanted = losses(model_with(as_is), token_cross_entropy(), kTokens);
  EXPECT_EQ(losses(model_with(softmax), token_cross_entropy(), kTokens), wanted);
  EXPECT_LT(wanted.back(), wanted.front());
  // Before opset 13 it flattens, which takes two Reshapes more.
  EXPECT_EQ(losses(model_with(
                       [](const Expr& y) {
                         return call("Softmax", {y}, {{"axis", 2}});
                       },
                       9),
                   token_cross_entropy(), kTokens),
            wanted);
}

TEST(Logits, AreMovedAsTheProbabilitiesAre) {
  const auto wanted = losses(model_with([](const Expr& y) {
                               return transpose(y, {0, 2, 1});
                             }),
                             cross_entropy(), kTokens);
  EXPECT_EQ(losses(model_with([](const Expr& y) {
                     return transpose(softmax(y), {0, 2, 1});
                   }),
                   cross_entropy(), kTokens),
            wanted);
  const Tensor flat = kTokens.reshaped({6});
  EXPECT_EQ(losses(model_with([](const Expr& y) {
                     return reshape(softmax(y), {6, 4});
                   }),
                   cross_entropy(), flat),
            losses(model_with([](const Expr& y) {
                     return reshape(y, {6, 4});
                   }),
                   cross_entropy(), flat));
}

TEST(Logits, OfASigmoidServeBinaryCrossEntropyAndClasses) {
  const auto sigmoids = [](const Expr& y) { return sigmoid(y); };
  const Tensor target = Tensor::full(DType::f32, {2, 3, 4}, 1.0);
  for (const Loss& loss : {bce_with_logits(), focal(), dice()}) {
    EXPECT_EQ(losses(model_with(sigmoids), loss, target), losses(model_with(as_is), loss, target))
        << loss.name;
  }
  EXPECT_EQ(losses(model_with(softmax), kl(), target), losses(model_with(as_is), kl(), target));
  EXPECT_EQ(losses(model_with(sigmoids), token_cross_entropy(), kTokens),
            losses(model_with(as_is), token_cross_entropy(), kTokens));
  EXPECT_NE(losses(model_with(sigmoids), mse(), target), losses(model_with(as_is), mse(), target));
}

TEST(Logits, LogProbabilitiesAreMadeOfProbabilities) {
  const auto log_softmax = [](const Expr& y) { return call("LogSoftmax", {y}, {{"axis", -1}}); };
  EXPECT_EQ(losses(model_with(softmax), ctc(), kTokens.reshaped({3, 2})),
            losses(model_with(log_softmax), ctc(), kTokens.reshaped({3, 2})));
}

TEST(Logits, AnAxisThatIsNotThatOfTheClassesIsNoEndInProbabilities) {
  const auto over_tokens = [](const Expr& y) { return call("Softmax", {y}, {{"axis", 1}}); };
  Model model = model_with(over_tokens);
  EXPECT_EQ(probabilities_of(token_cross_entropy(), *model.graph().outputs()[0]), nullptr);
  EXPECT_NE(probabilities_of(cross_entropy(), *model.graph().outputs()[0]), nullptr);
  const Loss own = custom_loss("cross_entropy", [](const Expr& y, const Expr&) { return y; });
  EXPECT_EQ(probabilities_of(own, *model.graph().outputs()[0]), nullptr);
}

TEST(Logits, TheModelKeepsItsEnd) {
  Model model = model_with(softmax);
  losses(model.clone(), token_cross_entropy(), kTokens);
  EXPECT_TRUE(model.graph().outputs()[0]->producer()->is("Softmax"));
}

}  // namespace
}  // namespace graft
