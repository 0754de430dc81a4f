// Parameters of 16 bits train as their f32 twins do.
#include "train/masters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "data/tensor_dataset.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "train/evaluator.h"
#include "train/train_step.h"

namespace graft {
namespace {

using ::testing::ElementsAre;

/// y = BatchNormalization(x w + b), all of one type.
Model norm_model(DType type) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const auto parameter = [&](const char* name, const Tensor& content) {
    return builder.expr(graph.add_initializer(name, content.cast(type)));
  };
  const Expr x = builder.expr(graph.add_input("x", {type, SymShape{Dim("N"), 2}}));
  const Expr w = parameter("w", Tensor::from<float>({2, 2}, {1, 2, 3, 4}));
  const Expr b = parameter("b", Tensor::from<float>({2}, {0.5F, -0.5F}));
  const Expr scale = parameter("scale", Tensor::from<float>({2}, {1, 1}));
  const Expr shift = parameter("shift", Tensor::from<float>({2}, {0, 0}));
  const Expr mean = parameter("running_mean", Tensor::from<float>({2}, {0, 0}));
  const Expr variance = parameter("running_var", Tensor::from<float>({2}, {1, 1}));
  graph.add_output(
      call("BatchNormalization", {matmul(x, w) + b, scale, shift, mean, variance}).value());
  return model;
}

Tensor batch(DType type) {
  return Tensor::from<float>({4, 2}, {1, -1, 0.5F, 2, -3, 1, 0.25F, 0}).cast(type);
}

class Masters : public ::testing::TestWithParam<DType> {};

/// Each update is far below what 16 bits tell apart at 1, all together are not.
TEST_P(Masters, SmallUpdatesAddUpAndTheFileGetsThemRounded) {
  Model narrow = norm_model(GetParam());
  Model wide = norm_model(DType::f32);
  const TrainOptions options{.loss = mse(), .optimizer = AdamW{.lr = 1e-4F}};
  TrainStep narrow_step(narrow, options);
  TrainStep wide_step(wide, options);
  EXPECT_THAT(narrow_step.parameter_names(), ElementsAre("w", "b", "scale", "shift"));
  const Tensor target = Tensor::zeros(DType::f32, {4, 2});
  for (int i = 0; i < 200; ++i) {
    const float loss = narrow_step.run({batch(GetParam())}, target);
    EXPECT_EQ(loss, wide_step.run({batch(DType::f32)}, target));
  }
  for (const Value* value : wide.graph().initializers()) {
    const Tensor& rounded = narrow.graph().find(value->name())->initializer();
    EXPECT_EQ(rounded.dtype(), GetParam());
    EXPECT_EQ(to_double(rounded), to_double(value->initializer().cast(GetParam())))
        << value->name();
  }
  EXPECT_NE(to_double(narrow.graph().find("w")->initializer()), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(narrow_step.prediction().dtype(), DType::f32);
}

TEST_P(Masters, ServeAccumulationTiesAndGradients) {
  for (const int accumulate : {1, 2}) {
    Model narrow = norm_model(GetParam());
    Model wide = norm_model(DType::f32);
    for (Model* model : {&narrow, &wide}) {
      Value* const shift = model->graph().find("shift");
      shift->set_initializer(model->graph().find("b")->initializer().clone());
      TrainStep step(*model, {.loss = mse(),
                              .optimizer = SGD{.lr = 0.1F},
                              .parameters = {"b"},
                              .tied = {{"b", "shift"}},
                              .clip = {.norm = 1.0F},
                              .accumulate = accumulate});
      const DType type = model->graph().find("w")->dtype();
      step.run({batch(type)}, Tensor::zeros(DType::f32, {4, 2}));
      step.run({batch(type)}, Tensor::zeros(DType::f32, {4, 2}));
    }
    const Tensor& b = narrow.graph().find("b")->initializer();
    EXPECT_EQ(to_double(b), to_double(wide.graph().find("b")->initializer().cast(GetParam())));
    EXPECT_EQ(to_double(b), to_double(narrow.graph().find("shift")->initializer()));
  }
  Model model = norm_model(GetParam());
  TrainStep step(model, {.loss = mse(), .optimizer = std::nullopt});
  step.run({batch(GetParam())}, Tensor::full(DType::f32, {4, 2}, 1.0));
  EXPECT_EQ(step.gradients().at("w").dtype(), DType::f32);
}

TEST_P(Masters, GoOnFromAStateWithTheSameBits) {
  const TrainOptions options{.loss = mse(), .optimizer = AdamW{.lr = 1e-4F}};
  const auto three_steps = [](TrainStep& step) {
    std::vector<float> losses;
    for (int i = 0; i < 3; ++i) {
      losses.push_back(step.run({batch(GetParam())}, Tensor::zeros(DType::f32, {4, 2})));
    }
    return losses;
  };
  Model model = norm_model(GetParam());
  TrainStep step(model, options);
  const TrainState start = clone(step.state());
  const std::vector<float> first = three_steps(step);
  const TrainState middle = clone(step.state());
  const std::vector<float> second = three_steps(step);
  Model other = norm_model(GetParam());
  TrainStep resumed(other, options);
  resumed.load_state(middle);
  EXPECT_EQ(three_steps(resumed), second);
  for (const auto& [name, tensor] : step.state().optimizer) {
    EXPECT_TRUE(equal_bits(tensor, resumed.state().optimizer.at(name))) << name;
  }
  resumed.load_state(start);
  EXPECT_EQ(three_steps(resumed), first);
}

TEST_P(Masters, AStateWithoutThemIsRefused) {
  Model model = norm_model(GetParam());
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}});
  step.run({batch(GetParam())}, Tensor::zeros(DType::f32, {4, 2}));
  TrainState state = clone(step.state());
  state.optimizer["w.master"] = state.optimizer.at("w.master").cast(DType::f16);
  testing::expect_error(ErrorKind::argument, "'w.master' as f16[2,2]",
                        [&] { step.load_state(state); });
  state.optimizer.clear();
  testing::expect_error(ErrorKind::argument, "keeps as 'master'", [&] { step.load_state(state); });
}

TEST_P(Masters, AreInTheStateFromWhichTrainingGoesOn) {
  const TrainOptions options{.loss = mse(), .optimizer = AdamW{.lr = 1e-4F}};
  const auto run = [](TrainStep& step) {
    return step.run({batch(GetParam())}, Tensor::zeros(DType::f32, {4, 2}));
  };
  Model one = norm_model(GetParam());
  TrainStep whole(one, options);
  const TrainState untrained = clone(whole.state());
  run(whole);
  const TrainState state = clone(whole.state());
  const float wanted = run(whole);
  Model other = norm_model(GetParam());
  TrainStep resumed(other, options);
  resumed.load_state(state);
  EXPECT_EQ(run(resumed), wanted);
  // What was stored before the first step has no masters: they start anew.
  resumed.load_state(untrained);
  whole.load_state(untrained);
  EXPECT_EQ(run(resumed), run(whole));
  EXPECT_EQ(to_double(other.graph().find("w")->initializer()),
            to_double(one.graph().find("w")->initializer()));
  EXPECT_NEAR(to_double(other.graph().find("w")->initializer()).back(), 4.0, 0.01);
}

/// The loss of 16-bit predictions is computed and read as f32.
TEST_P(Masters, EvaluationReadsTheLossOfNarrowModels) {
  const Model model = norm_model(GetParam());
  const auto data = tensor_dataset({{"x", batch(GetParam()), GetParam()}},
                                   {"y", Tensor::from<std::int64_t>({4}, {0, 1, 0, 1})});
  DataLoader loader(data, {.batch = 4});
  const Evaluation narrow = Evaluator(model).run(loader);
  const auto wide_data = tensor_dataset({{"x", batch(DType::f32)}},
                                        {"y", Tensor::from<std::int64_t>({4}, {0, 1, 0, 1})});
  DataLoader wide_loader(wide_data, {.batch = 4});
  const Evaluation wide = Evaluator(norm_model(DType::f32)).run(wide_loader);
  EXPECT_NEAR(narrow.loss, wide.loss, 0.02 * wide.loss);
  EXPECT_EQ(narrow.accuracy, wide.accuracy);
}

INSTANTIATE_TEST_SUITE_P(Types, Masters, ::testing::Values(DType::f16, DType::bf16),
                         [](const auto& type) { return text(type.param); });

}  // namespace
}  // namespace graft
