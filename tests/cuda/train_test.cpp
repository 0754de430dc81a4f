// Training, evaluation and inference on a device that is not the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/device/cuda/emulated/emulator.h"
#include "core/graph/model.h"
#include "core/layers/nets.h"
#include "core/runtime/session.h"
#include "data/tensor_dataset.h"
#include "io/onnx.h"
#include "tests/core/error_of.h"
#include "tests/train/nets.h"
#include "train/trainer.h"

namespace graft {
namespace {

using testing::HasSubstr;

constexpr const char* kCard = "cuda:emulated";
const Shape kImage{1, 8, 8};

/// Slow enough that rounding does not grow from step to step.
const Optimizer kSlow = SGD{.lr = 0.01F, .momentum = 0.9F};

TrainOptions on_card(const Optimizer& optimizer = kSlow) {
  return {.optimizer = optimizer, .device = kCard, .fallback = Fallback::cpu};
}

TrainOptions on_cpu(const Optimizer& optimizer = kSlow) {
  return {.optimizer = optimizer, .device = "cpu"};
}

std::vector<float> losses(TrainStep& step, int count) {
  std::vector<float> found;
  for (int i = 0; i < count; ++i) {
    found.push_back(step.run({test::random_tensor({6, 1, 8, 8}, static_cast<std::uint64_t>(i))},
                             test::cyclic_labels(6, 3)));
  }
  return found;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 2e-4F) << i;
}

void expect_equal(const Model& a, const Model& b) {
  const auto& left = a.graph().initializers();
  const auto& right = b.graph().initializers();
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(equal_bits(left[i]->initializer(), right[i]->initializer())) << left[i]->name();
  }
}

TEST(TrainOnCard, FollowsTheCpu) {
  const std::vector<std::pair<const char*, Optimizer>> cases{
      {"mlp", SGD{.lr = 0.1F, .momentum = 0.9F}}, {"mlp", Adam{.lr = 0.01F}}, {"resnet20", kSlow}};
  for (const auto& [net, optimizer] : cases) {
    Model here = make_net(net, kImage, 3, 1);
    Model there = make_net(net, kImage, 3, 1);
    TrainStep reference(here, on_cpu(optimizer));
    TrainStep step(there, on_card(optimizer));
    expect_near(losses(step, 4), losses(reference, 4));
  }
}

TEST(TrainOnCard, RecordedAndPlainStepsGiveEqualBits) {
  Model one = make_net("resnet20", kImage, 3, 1);
  Model other = make_net("resnet20", kImage, 3, 1);
  TrainOptions plain = on_card();
  plain.records = false;
  TrainStep recorded(one, on_card());
  TrainStep unrecorded(other, plain);
  EXPECT_EQ(losses(recorded, 3), losses(unrecorded, 3));
  expect_equal(one, other);
}

TEST(TrainOnCard, TheModelSharesWhatTheStepChanges) {
  Model model = make_net("resnet20", kImage, 3, 1);
  const std::vector<Tensor> before = test::snapshot(model);
  TrainStep step(model, on_card());
  losses(step, 2);
  std::size_t changed = 0;
  const auto& initializers = model.graph().initializers();
  for (std::size_t i = 0; i < initializers.size(); ++i) {
    const Tensor& tensor = initializers[i]->initializer();
    if (equal_bits(tensor, before[i])) continue;
    ++changed;
    EXPECT_EQ(&tensor.device(), &device(kCard)) << initializers[i]->name();
    EXPECT_EQ(kind_of([&] { tensor.values<float>(); }), ErrorKind::device);
  }
  EXPECT_GT(changed, step.parameter_names().size()) << "running statistics change too";
}

TEST(TrainOnCard, ATrainedModelIsSavedEvaluatedAndTrainedOnAnywhere) {
  Model model = make_net("resnet20", kImage, 3, 1);
  Model reference = make_net("resnet20", kImage, 3, 1);
  {
    TrainStep step(model, on_card());
    losses(step, 2);
    TrainStep same(reference, on_cpu());
    losses(same, 2);
  }
  const auto path = std::filesystem::temp_directory_path() / "graft_trained_on_card.onnx";
  onnx::save(model, path);
  const Model loaded = onnx::load(path);
  std::filesystem::remove(path);
  expect_equal(loaded, model);
  const Tensor x = test::random_tensor({2, 1, 8, 8}, 9);
  const Tensor wanted = Session(loaded).run({x})[0];
  EXPECT_TRUE(equal_bits(Session(model).run({x})[0], wanted));
  Session there(model, {.device = &device(kCard), .fallback = Fallback::cpu});
  const std::vector<double> found = to_double(there.run({x})[0]);
  const std::vector<double> expected = to_double(wanted);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4);
  // On the card again, then on the CPU.
  TrainStep more(model, on_card());
  TrainStep more_there(reference, on_cpu());
  expect_near(losses(more, 2), losses(more_there, 2));
  TrainStep home(model, on_cpu());
  TrainStep home_there(reference, on_cpu());
  expect_near(losses(home, 2), losses(home_there, 2));
  for (const std::string& name : home.parameter_names()) {
    EXPECT_EQ(&model.graph().find(name)->initializer().device(), &cpu()) << name;
  }
}

TEST(TrainOnCard, TwoStepsOfOneModelShareItsParameters) {
  Model model = make_net("mlp", kImage, 3, 1);
  Model reference = make_net("mlp", kImage, 3, 1);
  TrainStep first(model, on_card());
  TrainStep second(model, on_card());
  TrainStep first_there(reference, on_cpu());
  TrainStep second_there(reference, on_cpu());
  for (int i = 0; i < 2; ++i) {
    expect_near(losses(first, 1), losses(first_there, 1));
    expect_near(losses(second, 1), losses(second_there, 1));
  }
}

TEST(TrainOnCard, AccumulatesGivesGradientsAndTies) {
  Model here = make_net("mlp", kImage, 3, 1);
  Model there = make_net("mlp", kImage, 3, 1);
  TrainOptions cpu_options = on_cpu();
  TrainOptions card_options = on_card();
  cpu_options.accumulate = card_options.accumulate = 2;
  TrainStep reference(here, cpu_options);
  TrainStep step(there, card_options);
  expect_near(losses(step, 4), losses(reference, 4));
  cpu_options.optimizer.reset();
  card_options.optimizer.reset();
  TrainStep gradients_here(here, cpu_options);
  TrainStep gradients_there(there, card_options);
  losses(gradients_here, 1);
  losses(gradients_there, 1);
  const auto wanted = gradients_here.gradients();
  for (const auto& [name, gradient] : gradients_there.gradients()) {
    const std::vector<double> a = to_double(gradient);
    const std::vector<double> b = to_double(wanted.at(name));
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << name;
  }
}

TEST(TrainOnCard, GoesOnFromAStateOfTheCpu) {
  Model here = make_net("mlp", kImage, 3, 1);
  Model there = make_net("mlp", kImage, 3, 1);
  TrainStep reference(here, on_cpu());
  losses(reference, 2);
  TrainStep step(there, on_card());
  step.load_state(clone(reference.state()));
  expect_near(losses(step, 2), losses(reference, 2));
}

/// y = x w in f16.
Model narrow_model() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f16, SymShape{4, 2}});
  const Tensor content = Tensor::from<float>({2, 2}, {1, 2, 3, 4}).cast(DType::f16);
  Value* const w = graph.add_initializer("w", content);
  graph.add_output(graph.add_node("MatMul", "", {x, w}, {"y"})->output());
  return model;
}

TEST(TrainOnCard, SixteenBitsTrainAsOnTheCpu) {
  Model here = narrow_model();
  Model there = narrow_model();
  TrainOptions cpu_options = on_cpu();
  TrainOptions card_options = on_card();
  cpu_options.loss = card_options.loss = mse();
  TrainStep reference(here, cpu_options);
  TrainStep step(there, card_options);
  const Tensor x = test::random_tensor({4, 2}, 1).cast(DType::f16);
  const Tensor target = Tensor::zeros(DType::f32, {4, 2});
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(step.run({x}, target), reference.run({x}, target), 1e-4F);
}

TEST(TrainOnCard, TargetsOnTheCardAreJudged) {
  const Tensor labels = test::cyclic_labels(6, 3).to(device(kCard));
  const Loss loss = loss_from_spec("cross_entropy:ignore_index=0");
  check_class_targets(loss, labels, 3);
  EXPECT_EQ(count_judged(loss, labels), 4);
}

TEST(TrainOnCard, TrainerFitsAndEvaluates) {
  const Tensor images = test::random_tensor({60, 1, 2, 2}, 5);
  Tensor labels = Tensor::empty(DType::i64, {60});
  for (std::size_t i = 0; i < 60; ++i) {
    labels.values<std::int64_t>()[i] = images.values<const float>()[4 * i] > 0.0F ? 1 : 0;
  }
  const auto data = tensor_dataset({{"x", images}}, {"y", labels});
  Model model = make_net("mlp", Shape{1, 2, 2}, 2, 1);
  Trainer trainer(model, on_card(Adam{.lr = 0.02F}));
  DataLoader loader(data, {.batch = 16, .shuffle = true, .seed = 3});
  DataLoader held_back(data, {.batch = 25});
  const auto reports = trainer.fit(loader, {.epochs = 12, .validation = &held_back});
  EXPECT_LT(reports.back().loss, 0.5 * reports.front().loss);
  EXPECT_GT(reports.back().validation->accuracy, 0.95);
  EXPECT_EQ(trainer.evaluate(held_back).loss, reports.back().validation->loss);
}

TEST(TrainOnCard, LeNetNeedsNoFallback) {
  Model here = make_net("lenet", Shape{1, 16, 16}, 3, 1);
  Model there = make_net("lenet", Shape{1, 16, 16}, 3, 1);
  TrainOptions options = on_card();
  options.fallback = Fallback::none;
  TrainStep reference(here, on_cpu());
  TrainStep step(there, options);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Tensor x = test::random_tensor({4, 1, 16, 16}, seed);
    const Tensor labels = test::cyclic_labels(4, 3);
    EXPECT_NEAR(step.run({x}, labels), reference.run({x}, labels), 2e-4F);
  }
}

TEST(TrainOnCard, OutOfMemoryNamesTheLargestBatch) {
  Model model = make_net("mlp", Shape{1, 28, 28}, 3, 1);
  TrainStep step(model, on_card());
  step.run({test::random_tensor({2, 1, 28, 28}, 1)}, test::cyclic_labels(2, 3));
  emulated::set_memory_limit(std::size_t{8} << 20);
  const Error error = error_of([&] {
    step.run({test::random_tensor({4096, 1, 28, 28}, 1)}, test::cyclic_labels(4096, 3));
  });
  EXPECT_EQ(error.kind(), ErrorKind::memory);
  EXPECT_THAT(error.what(), HasSubstr("cuda:emulated: cannot allocate"));
  EXPECT_THAT(error.what(), HasSubstr(" fits, this one is 4096"));
  emulated::set_memory_limit(std::size_t{8} << 30);
  EXPECT_GT(step.run({test::random_tensor({2, 1, 28, 28}, 1)}, test::cyclic_labels(2, 3)), 0.0F);
}

}  // namespace
}  // namespace graft
