#include "train/step_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/base/rng.h"
#include "core/layers/append.h"
#include "core/layers/nets.h"
#include "core/ops/builder.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kBatch = 4;
const ValueType kImages{DType::f32, SymShape(Shape{kBatch, 1, 16, 16})};
const ValueType kClasses{DType::i64, SymShape(Shape{kBatch})};

Tensor images(std::uint64_t seed) {
  Tensor x = Tensor::empty(DType::f32, Shape{kBatch, 1, 16, 16});
  const Philox random(seed, 0);
  std::uint64_t at = 0;
  for (float& value : x.values<float>()) value = static_cast<float>(random.normal(at++));
  return x;
}

Tensor classes() {
  return Tensor::from(Shape{kBatch}, std::vector<std::int64_t>{0, 2, 1, 2});
}

Model net() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  graph.add_output(graph.add_input("x", kImages));
  edit::append(model,
               {Conv{.name = "conv", .out = 4, .bias = false, .seed = 1}, BatchNorm{.name = "norm"},
                Relu{}, MaxPool{}, Flatten{}, Linear{.name = "head", .out = 3, .seed = 2}});
  return model;
}

/// The exported step run as another runtime would: by names, from inputs alone.
class Loop {
 public:
  explicit Loop(const StepModel& made) : made_(made), session_(made.step) {
    for (const StepVariable& variable : made.variables) {
      variables_[variable.name] = variable.initial.clone();
    }
  }

  float run(const Tensor& x, const Tensor& target, float lr) {
    std::vector<Tensor> inputs{x, target, Tensor::scalar(lr), Tensor::scalar(++step_)};
    for (std::size_t i = inputs.size(); i < made_.step.graph().inputs().size(); ++i) {
      inputs.push_back(variables_.at(made_.step.graph().inputs()[i]->name()));
    }
    const std::vector<Tensor> outputs = session_.run(inputs);
    const std::vector<Value*>& names = made_.step.graph().outputs();
    for (const StepVariable& variable : made_.variables) {
      const auto at = std::ranges::find(names, variable.next, &Value::name);
      variables_[variable.name] = outputs[static_cast<std::size_t>(at - names.begin())].clone();
    }
    return outputs[0].values<const float>()[0];
  }
  const Tensor& variable(const std::string& name) const { return variables_.at(name); }

 private:
  const StepModel& made_;
  Session session_;
  std::map<std::string, Tensor> variables_;
  std::int64_t step_ = 0;
};

void expect_near(const Tensor& found, const Tensor& wanted) {
  const std::vector<double> a = to_double(found);
  const std::vector<double> b = to_double(wanted);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << "element " << i;
}

TEST(ExportStep, TrainsAsTheStepItself) {
  for (const Optimizer& optimizer :
       {Optimizer(SGD{.lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F}),
        Optimizer(AdamW{.lr = 0.01F})}) {
    Model model = net();
    TrainOptions options{.optimizer = optimizer};
    const StepModel made = export_step(model, options, {kImages}, kClasses);
    Loop loop(made);
    TrainStep step(model, options);
    for (std::uint64_t i = 0; i < 4; ++i) {
      const float wanted = step.run({images(i)}, classes());
      EXPECT_NEAR(loop.run(images(i), classes(), learning_rate(optimizer)), wanted,
                  1e-5 * (1 + wanted))
          << i;
    }
    for (const Value* initializer : model.graph().initializers()) {
      SCOPED_TRACE(initializer->name());
      expect_near(loop.variable(initializer->name()), initializer->initializer());
    }
  }
}

Tensor stacked(const std::vector<Tensor>& all) {
  std::vector<std::int64_t> dims = all[0].shape().dims();
  dims.insert(dims.begin(), static_cast<std::int64_t>(all.size()));
  Tensor result = Tensor::empty(all[0].dtype(), Shape(dims));
  auto* to = static_cast<std::byte*>(result.data());
  for (const Tensor& one : all) {
    to = std::copy_n(static_cast<const std::byte*>(one.data()), one.bytes(), to);
  }
  return result;
}

TEST(ExportStep, OneCallMakesManySteps) {
  const TrainOptions options{.optimizer = AdamW{.lr = 0.01F}};
  const StepModel one = export_step(net(), options, {kImages}, kClasses);
  const StepModel three = export_step(net(), options, {kImages}, kClasses, {.steps = 3});
  EXPECT_EQ(three.target, one.target);
  Loop loop(one);
  const std::vector<float> rates{0.01F, 0.02F, 0.005F};
  std::vector<Tensor> inputs{
      stacked({images(0), images(1), images(2)}), stacked({classes(), classes(), classes()}),
      Tensor::from(Shape{3}, rates), Tensor::from(Shape{3}, std::vector<std::int64_t>{1, 2, 3})};
  for (const StepVariable& variable : three.variables) inputs.push_back(variable.initial);
  const std::vector<Tensor> found = Session(three.step).run(inputs);
  EXPECT_EQ(found[1].shape(), (Shape{3, kBatch, 3}));
  for (std::size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(found[0].values<const float>()[i], loop.run(images(i), classes(), rates[i]), 1e-5);
  }
  for (std::size_t i = 0; i < three.variables.size(); ++i) {
    const StepVariable& variable = three.variables[i];
    EXPECT_EQ(three.step.graph().outputs()[2 + i]->name(), variable.next);
    expect_near(found[2 + i], loop.variable(variable.name));
  }
  EXPECT_EQ(error_of([] { export_step(net(), {}, {kImages}, kClasses, {.steps = 0}); }).kind(),
            ErrorKind::argument);
}

TEST(ExportStep, LeavesTheModelAndItsOpsOfOnnx) {
  Model model = net();
  const Model fresh = net();
  const StepModel made = export_step(model, {}, {kImages}, kClasses);
  for (const Model* written : {&made.step, &made.evaluation}) {
    for (const auto& node : written->graph().nodes())
      EXPECT_EQ(node->domain(), "") << node->label();
    EXPECT_LE(written->opset(), 22);
  }
  for (const Value* initializer : model.graph().initializers()) {
    expect_near(initializer->initializer(), fresh.graph().find(initializer->name())->initializer());
  }
  EXPECT_EQ(made.target, made.step.graph().inputs()[1]->name());
}

TEST(ExportStep, EvaluatesWithTheVariables) {
  Model model = net();
  const StepModel made = export_step(model, {}, {kImages}, kClasses);
  const Graph& graph = made.evaluation.graph();
  std::vector<Tensor> inputs{images(0), classes()};
  for (std::size_t i = inputs.size(); i < graph.inputs().size(); ++i) {
    inputs.push_back(model.graph().find(graph.inputs()[i]->name())->initializer());
  }
  const std::vector<Tensor> found = Session(made.evaluation).run(inputs);
  expect_near(found.at(1), Session(model).run({images(0)}).at(0));
}

// Runtimes name what they make of node "conv" for its bias "conv.bias", as an input is called.
TEST(ExportStep, NoInputIsNamedAfterANode) {
  const Model model = net();
  const StepModel made = export_step(model, {}, {kImages}, kClasses);
  EXPECT_NE(made.step.graph().find("conv.weight"), nullptr);
  for (const Model* written : {&made.step, &made.evaluation}) {
    for (const Value* input : written->graph().inputs()) {
      const std::string stem = input->name().substr(0, input->name().find('.'));
      for (const auto& node : written->graph().nodes()) {
        EXPECT_NE(node->name(), stem);
        const bool is_free = node->output()->name() != stem || node->output()->is_graph_output();
        EXPECT_TRUE(is_free) << stem;
      }
    }
  }
}

TEST(ExportStep, DropsElementsInTheStepAlone) {
  const ValueType ones{DType::f32, SymShape(Shape{1, 1000})};
  Model model;
  model.set_opset("", 17);
  model.graph().add_output(model.graph().add_input("x", ones));
  edit::append(model, {Linear{.name = "head", .out = 1000, .bias = false, .seed = 2}, Dropout{}});
  const Tensor weight = model.graph().find("head.weight")->initializer();
  std::ranges::fill(weight.values<float>(), 0.001F);
  const StepModel made = export_step(model, {.loss = mse(), .optimizer = SGD{.lr = 1.0F}}, {ones},
                                     {DType::f32, SymShape(Shape{1, 1000})});
  const auto draws = [](const Model& written) {
    return std::ranges::any_of(written.graph().nodes(),
                               [](const auto& node) { return node->is("RandomUniform"); });
  };
  EXPECT_TRUE(draws(made.step));
  EXPECT_FALSE(draws(made.evaluation));
  // y = 2 where an element survives; d(mean y^2) / dw is 2 * 2 * 2 / 1000 there, else 0.
  Loop loop(made);
  EXPECT_NEAR(loop.run(Tensor::full(DType::f32, Shape{1, 1000}, 1.0),
                       Tensor::zeros(DType::f32, Shape{1, 1000}), 1.0F),
              2.0F, 0.3F);
  const auto trained = loop.variable("head.weight").values<const float>();
  const auto changed = std::ranges::count_if(trained, [](float w) { return w != 0.001F; });
  EXPECT_EQ(changed % 1000, 0) << "whole units survive";
  EXPECT_NEAR(changed, 500'000, 80'000);
  EXPECT_NEAR(*std::ranges::min_element(trained), 0.001F - 0.008F, 1e-6);
}

TEST(ExportStep, RefusesByNameWhatOnnxLacks) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", kImages));
  const Expr w = builder.expr(graph.add_initializer("w", Tensor::zeros(DType::f32, Shape{16, 16})));
  graph.add_output(call("Det", {matmul(x, w)}).value());
  const Error error = error_of([&] {
    export_step(model, {.loss = mse()}, {kImages}, {DType::f32, SymShape(Shape{kBatch, 1})});
  });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("it needs Cofactors"));
}

TEST(ExportStep, RefusesOptionsThatItCannotExport) {
  const auto kind = [](const TrainOptions& options) {
    return error_of([&] { export_step(net(), options, {kImages}, kClasses); }).kind();
  };
  EXPECT_EQ(kind({.optimizer = std::nullopt}), ErrorKind::argument);
  EXPECT_EQ(kind({.optimizer = Adam{.beta1 = 2.0F}}), ErrorKind::argument);
  EXPECT_EQ(kind({.ema = 3.0F}), ErrorKind::argument);
  EXPECT_EQ(kind({.accumulate = 0}), ErrorKind::argument);
  EXPECT_EQ(kind({.accumulate = 4}), ErrorKind::unsupported);
}

}  // namespace
}  // namespace graft
