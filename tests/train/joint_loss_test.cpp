// Losses over several outputs and targets, and those that the model computes itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/joint_loss.h"
#include "core/ops/builder.h"
#include "data/tensor_dataset.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "train/trainer.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using ::testing::FloatEq;

const Tensor kX = Tensor::from<float>({1, 2}, {1, -1});

/// y = (-1.5,-2.5) and z = -1: mean(y^2) = 4.25, |z - 1| = 2.
TEST(JointLoss, ASumJudgesEachOutputByItsTarget) {
  Model model = test::two_outputs();
  const Loss loss = loss_from_spec("y=mse+z=0.5*l1");
  EXPECT_EQ(loss.name, "y=mse+z=0.5*l1");
  TrainStep step(model, {.loss = loss, .optimizer = SGD{.lr = 0.1F}});
  const std::vector<Tensor> targets{Tensor::zeros(DType::f32, {1, 2}),
                                    Tensor::from<float>({1, 1}, {1})};
  EXPECT_FLOAT_EQ(step.run({kX}, targets), 5.25F);
  EXPECT_THAT(model.graph().find("v")->initializer().values<const float>(),
              ElementsAre(FloatEq(2.05F), FloatEq(2.95F)));
  EXPECT_THAT(step.prediction().values<const float>(), ElementsAre(-1.5F, -2.5F));
}

TEST(JointLoss, OneTargetIsForAllParts) {
  Model model = test::two_outputs();
  TrainStep step(model, {.loss = sum_of({{"z", l1()}, {"z", mse(), 2.0F}})});
  EXPECT_FLOAT_EQ(step.run({kX}, Tensor::from<float>({1, 1}, {1})), 2.0F + 2.0F * 4.0F);
}

TEST(JointLoss, ClassesOfEachPartAreChecked) {
  Model model = test::two_outputs();
  Loss second = cross_entropy();
  second.ignore_index = 7;
  TrainStep step(model, {.loss = sum_of({{"z", l1()}, {"y", second}})});
  const auto run = [&](std::int64_t label) {
    return step.run({kX},
                    {Tensor::from<float>({1, 1}, {1}), Tensor::from<std::int64_t>({1}, {label})});
  };
  EXPECT_GT(run(1), 2.0F);
  expect_error(ErrorKind::argument, "class index 2 at position 0", [&] { run(2); });
}

/// As docs/losses.md has it: scores [N,C,S] and boxes [N,S,4] against classes i64 [N,S], of which
/// 255 is unknown and 0 is nothing, and boxes.
Loss detection(double box_weight) {
  const auto formula = [=](const std::vector<Expr>& outputs, const std::vector<Expr>& targets) {
    const Expr& classes = targets[0];
    Loss entropy = cross_entropy();
    entropy.ignore_index = 255;
    const auto is_not = [&](double number) {
      const Expr same = equal(classes, constant_like(classes, number));
      return 1.0 - cast(same, outputs[0].dtype());
    };
    const Expr objects = is_not(255) * is_not(0);  // [N,S]
    const Expr distance = reduce_sum(call("Abs", {outputs[1] - targets[1]}), {2}, false);
    const auto sum = [](const Expr& x) { return reduce_sum(x, {}, false); };
    const Expr boxes = sum(distance * objects) / (sum(objects) + 1e-6);
    return add_loss(entropy, outputs[0], classes) + boxes * box_weight;
  };
  return joint_loss("detection", {"scores", "boxes"}, formula);
}

/// Scores are x times 1, boxes x times 2, each of its shape: [1,2,3] and [1,3,4].
Model detector() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const auto scaled = [&](const std::string& input, const Shape& shape, float factor) {
    const Expr x = builder.expr(graph.add_input(input, {DType::f32, SymShape(shape)}));
    const Tensor weight = Tensor::full(DType::f32, Shape{1, 1, shape[2]}, factor);
    return (x * builder.expr(graph.add_initializer(input + ".weight", weight))).value();
  };
  Value* const scores = scaled("a", {1, 2, 3}, 1.0F);
  Value* const boxes = scaled("b", {1, 3, 4}, 2.0F);
  graph.rename(scores, "scores");
  graph.rename(boxes, "boxes");
  graph.set_outputs({boxes, scores});
  return model;
}

/// Scores are equal, so each known cell loses log 2; the one object is 4 * |2 - 1.5| off.
TEST(JointLoss, TwoOutputsTwoTargetsAndAnIgnoredClass) {
  Model model = detector();
  TrainStep step(model, {.loss = detection(0.25),
                         .optimizer = SGD{.lr = 0.1F},
                         .parameters = {"a.weight", "b.weight"}});
  const std::vector<Tensor> inputs{Tensor::full(DType::f32, {1, 2, 3}, 1.0),
                                   Tensor::full(DType::f32, {1, 3, 4}, 1.0)};
  const Tensor classes = Tensor::from<std::int64_t>({1, 3}, {0, 1, 255});
  const float loss = step.run(inputs, {classes, Tensor::full(DType::f32, {1, 3, 4}, 1.5)});
  EXPECT_NEAR(loss, std::log(2.0) + 0.25 * 2.0, 1e-5);
  EXPECT_EQ(step.prediction().shape(), (Shape{1, 2, 3})) << "the first that it names";
  // Each box weight of the object: 2 - 0.1 * 0.25 * sign.
  EXPECT_NEAR(model.graph().find("b.weight")->initializer().values<float>()[0], 1.975F, 1e-6F);
}

/// Adds the output "loss" = mean cross entropy of y and the input "label", which comes first.
Model with_loss() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr label = builder.expr(graph.add_input("label", {DType::i64, SymShape{Dim("N")}}));
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}}));
  const Expr w =
      builder.expr(graph.add_initializer("w", Tensor::from<float>({2, 2}, {1, 2, 3, 4})));
  const Expr y = matmul(x, w);
  Value* const loss = call("SoftmaxCrossEntropyLoss", {y, label}).value();
  graph.rename(loss, "loss");
  graph.rename(y.value(), "y");
  graph.set_outputs({loss, y.value()});
  return model;
}

TEST(GraphLoss, TrainsAsTheSameLossOutside) {
  Model inside = with_loss();
  Model outside = with_loss();
  outside.graph().set_outputs({outside.graph().find("y")});
  outside.graph().remove(outside.graph().nodes().back().get());
  outside.graph().remove_input(outside.graph().find("label"));
  TrainStep one(inside, {.loss = loss_from_spec("graph:loss"), .optimizer = Adam{.lr = 0.1F}});
  TrainStep other(outside, {.loss = cross_entropy(), .optimizer = Adam{.lr = 0.1F}});
  const Tensor x = test::random_tensor({6, 2}, 1);
  const Tensor labels = test::cyclic_labels(6, 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(one.run({x}, labels), other.run({x}, labels), 1e-6F);
  }
  EXPECT_EQ(one.prediction().shape(), (Shape{6, 2})) << "the output beside the loss";
  const auto wanted = outside.graph().find("w")->initializer().values<const float>();
  const auto found = inside.graph().find("w")->initializer().values<const float>();
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5F);
}

TEST(GraphLoss, MayNeedNoTarget) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}}));
  const Expr w =
      builder.expr(graph.add_initializer("w", Tensor::from<float>({2, 2}, {1, 0, 0, 2})));
  const Expr missed = matmul(x, w) - x;
  graph.add_output(call("ReduceMean", {missed * missed}).value());  // [1,1]
  const Loss loss = graph_loss(graph.outputs().front()->name());
  TrainStep step(model, {.loss = loss, .optimizer = std::nullopt});
  const Tensor unread = Tensor::zeros(DType::f32, {1});
  EXPECT_FLOAT_EQ(step.run({kX}, unread), 0.5F);
  EXPECT_FLOAT_EQ(step.run({kX}, std::vector<Tensor>{}), 0.5F);
  const std::string no_target = "target 0 of the batch is undefined";
  expect_error(ErrorKind::argument, no_target, [&] { step.run({kX}, Tensor()); });
  expect_error(ErrorKind::argument, no_target, [&] { step.plan({kX}, Tensor()); });
  expect_error(ErrorKind::argument, "input 0 of the batch is undefined",
               [&] { step.run({Tensor()}, unread); });
  const Batch batch{.inputs = {kX}, .size = 1};
  Trainer trainer(model, {.loss = loss});
  expect_error(ErrorKind::argument, no_target, [&] { trainer.step(batch); });
  expect_error(ErrorKind::argument, no_target, [&] { trainer.evaluate(batch); });
}

TEST(JointLoss, WhatDoesNotFitIsRefused) {
  const auto run = [](Loss loss, std::size_t targets, std::string output = "") {
    Model model = test::two_outputs();
    TrainStep step(model, {.loss = std::move(loss), .output = std::move(output)});
    step.run({kX}, std::vector<Tensor>(targets, Tensor::zeros(DType::f32, {1, 1})));
  };
  const Loss sum = sum_of({{"y", mse()}, {"z", mse()}, {"z", l1()}});
  expect_error(ErrorKind::argument, "has 3 parts, the batch 2 targets", [&] { run(sum, 2); });
  expect_error(ErrorKind::argument, "takes one target, the batch has 2", [&] { run(mse(), 2); });
  expect_error(ErrorKind::argument, "no output 'q'; its outputs: y, z", [&] {
    run(sum_of({{"q", mse()}}), 1);
  });
  expect_error(ErrorKind::argument, "names those that it judges", [&] { run(sum, 1, "z"); });
  expect_error(ErrorKind::shape, "'y', is f32[1,2], wanted one float",
               [&] { run(graph_loss("y"), 1); });
  expect_error(ErrorKind::argument, "the model has 1 inputs, the batch 0 inputs and 2 targets", [] {
    Model model = test::two_outputs();
    TrainStep step(model, {.loss = graph_loss("z")});
    step.run({}, {kX, kX});
  });
}

/// Five samples in batches of four: the last is smaller.
TEST(JointLoss, GoesThroughLoaderAndTrainer) {
  const auto data = tensor_dataset({{"x", test::random_tensor({5, 2}, 1)}},
                                   {"target_y", test::cyclic_labels(5, 2)}, 0,
                                   {{"target_z", test::random_tensor({5, 1}, 2)}});
  EXPECT_EQ(data->info().further_targets.front().name, "target_z");
  Model model = test::two_outputs();
  Trainer trainer(model, {.loss = sum_of({{"y", cross_entropy()}, {"z", mse()}}),
                          .optimizer = AdamW{.lr = 0.1F}});
  DataLoader loader(data, {.batch = 4});
  const double before = trainer.evaluate(loader).loss;
  const std::vector<EpochReport> reports =
      trainer.fit(loader, {.epochs = 30, .validation = &loader});
  EXPECT_LT(reports.back().validation->loss, 0.7 * before);
  EXPECT_TRUE(reports.back().accuracy) << "of the first part";
}

}  // namespace
}  // namespace graft
