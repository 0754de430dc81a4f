#include "train/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/graph/print.h"
#include "tests/train/nets.h"

namespace graft {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::Not;

/// x w + b + b2, where b2 is an Identity of b, as exporters write parameters that were equal.
Model merged_model() {
  Model model = test::linear_model();
  Graph& graph = model.graph();
  Value* const b2 = graph.add_node("Identity", "", {graph.find("b")}, {"b2"})->output();
  Value* const y = graph.outputs().front();
  graph.set_outputs({graph.add_node("Add", "", {y, b2}, {"y2"})->output()});
  return model;
}

CompileRequest request(StepKind kind, StateTensors& state, passes::PassLog* log = nullptr) {
  const ValueType batch{DType::f32, SymShape(Shape{1, 2})};
  return {.kind = kind,
          .inputs = {batch},
          .targets = {batch},
          .trained = {{"w", "b"}},
          .state = &state,
          .log = log};
}

TEST(Compile, NamesTheOutputs) {
  const TrainOptions options{.loss = mse()};
  const TrainableModel made = prepare_training(test::linear_model(), options);
  EXPECT_THAT(made.trained.parameters, ElementsAre("w", "b"));
  StateTensors state;
  EXPECT_THAT(compile(made.model, options, request(StepKind::evaluate, state)).outputs,
              ElementsAre("loss", "prediction"));
  const Compiled step = compile(made.model, options, request(StepKind::gradients, state));
  EXPECT_THAT(step.outputs, ElementsAre("loss", "prediction", "w", "b"));
  EXPECT_EQ(step.plan.output_count(), 4);
  EXPECT_TRUE(state.empty());
  compile(made.model, options, request(StepKind::accumulate, state));
  EXPECT_EQ(state.size(), 2U) << "a buffer for each gradient";
}

TEST(Compile, RecordsAllThatHappensToTheGraph) {
  passes::PassLog log;
  const TrainOptions options{.loss = mse()};
  const TrainableModel made = prepare_training(test::linear_model(), options, &log);
  StateTensors state;
  compile(made.model, options, request(StepKind::update, state, &log));
  for (const char* name : {"upgrade_opset", "bind_inputs", "train_mode", "add_loss", "keep_argmax",
                           "add_gradients", "add_updates", "fuse_product_updates", "fuse_chains",
                           "prepare_kernels", "order_for_memory"}) {
    EXPECT_THAT(log.records, Contains(Field(&passes::PassRecord::name, name)));
  }
  log.records.clear();
  compile(made.model, options, request(StepKind::evaluate, state, &log));
  for (const char* name : {"train_mode", "keep_argmax", "add_gradients", "add_updates"}) {
    EXPECT_THAT(log.records, Not(Contains(Field(&passes::PassRecord::name, name))));
  }
}

TEST(Compile, OptionsThatDoNotFitLeaveTheModelAsItWas) {
  Model model = merged_model();
  const std::string before = print(model);
  EXPECT_THROW(TrainStep(model, {.freeze = "("}), Error);
  EXPECT_THROW(TrainStep(model, {.trainable = "none"}), Error);
  EXPECT_THROW(TrainStep(model, {.tied = {{"b", "none"}}}), Error);
  EXPECT_EQ(print(model), before);
}

TEST(Compile, TheModelHoldsWhatTrains) {
  Model model = merged_model();
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.1F}});
  EXPECT_THAT(step.parameter_names(), ElementsAre("w", "b", "b2"));
  step.run({Tensor::from<float>({1, 2}, {1, -1})}, Tensor::zeros(DType::f32, {1, 2}));
  const Tensor& b = model.graph().find("b")->initializer();
  const Tensor& b2 = model.graph().find("b2")->initializer();
  EXPECT_NE(b.data(), b2.data());
  EXPECT_NE(b2.values<const float>()[0], 0.5F);
  EXPECT_EQ(to_double(b), to_double(b2)) << "they have the same gradient";
}

}  // namespace
}  // namespace graft
