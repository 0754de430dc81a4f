#include "optim/update.h"

#include <gmock/gmock.h>

#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "core/graph/graph.h"
#include "core/graph/print.h"
#include "core/ops/evaluate.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

/// One f64 parameter of value 1 under gradients 0.5, -0.25, 1.0 at lr 0.1: its values after each
/// update. Expected numbers come from torch.optim's formulas, written out in Python.
std::vector<double> trajectory(const Optimizer& optimizer) {
  Graph graph;
  Builder builder(graph);
  const auto variable = [&](const char* name, Tensor tensor) {
    Value* const value = graph.add_initializer(name, std::move(tensor));
    value->is_variable = true;
    return value;
  };
  Value* const parameter = variable("w", Tensor::scalar(1.0));
  Value* const gradient = variable("g", Tensor::scalar(0.0));
  Value* const lr = variable("lr", Tensor::scalar(0.1));
  Value* const step = variable("step", Tensor::scalar(std::int64_t{0}));
  add_update(builder, optimizer, {parameter, builder.expr(gradient)},
             {builder.expr(lr), builder.expr(step)});
  const Node& update = *graph.nodes().back();
  std::vector<double> values;
  for (const double g : {0.5, -0.25, 1.0}) {
    gradient->initializer().values<double>()[0] = g;
    step->initializer().values<std::int64_t>()[0] += 1;
    std::vector<Tensor> inputs;
    for (const Value* input : update.inputs()) {
      inputs.push_back(input == nullptr ? Tensor() : input->initializer());
    }
    const std::vector<Tensor> outputs = evaluate(update, inputs);
    // Write each new content back over the variable that it belongs to.
    parameter->initializer().copy_from(outputs[0]);
    std::size_t output = 1;
    for (std::size_t i = 3; i < inputs.size(); ++i) {
      if (update.inputs()[i] == step) continue;
      if (inputs[i].defined()) inputs[i].copy_from(outputs[output]);
      ++output;
    }
    values.push_back(parameter->initializer().values<double>()[0]);
  }
  return values;
}

void expect_trajectory(const Optimizer& optimizer, const std::vector<double>& wanted) {
  std::vector<::testing::Matcher<double>> matchers;
  // Settings such as 0.999 are f32.
  for (const double value : wanted) matchers.push_back(DoubleNear(value, 2e-6));
  EXPECT_THAT(trajectory(optimizer), ElementsAreArray(matchers));
}

TEST(SGD, FollowsPyTorch) {
  expect_trajectory(SGD{}, {0.95, 0.975, 0.875});
  expect_trajectory(SGD{.weight_decay = 0.1F}, {0.94, 0.9556, 0.846044});
}

TEST(SGD, MomentumFollowsPyTorch) {
  expect_trajectory(SGD{.momentum = 0.9F}, {0.95, 0.93, 0.812});
  expect_trajectory(SGD{.momentum = 0.9F, .nesterov = true}, {0.905, 0.912, 0.7058});
  // The first step takes the whole gradient, whatever the dampening.
  expect_trajectory(SGD{.momentum = 0.9F, .dampening = 0.5F}, {0.95, 0.9175, 0.83825});
}

TEST(Adam, FollowsPyTorch) {
  expect_trajectory(Adam{}, {0.900000002, 0.873366299, 0.80755514});
  expect_trajectory(Adam{.weight_decay = 0.1F}, {0.900000002, 0.854441367, 0.7815044});
}

TEST(AdamW, FollowsPyTorch) {
  expect_trajectory(AdamW{.weight_decay = 0.1F}, {0.890000002, 0.854466299, 0.780110477});
}

TEST(RMSprop, FollowsPyTorch) {
  expect_trajectory(RMSprop{}, {2e-07, 0.449013374, -0.425726216});
  expect_trajectory(RMSprop{.weight_decay = 0.1F}, {1.66666639e-07, 0.386264614, -0.463626216});
  expect_trajectory(RMSprop{.momentum = 0.9F, .centered = true},
                    {-0.00503761324, -0.460122949, -1.74965253});
}

TEST(Adagrad, FollowsPyTorch) {
  expect_trajectory(Adagrad{}, {0.9, 0.94472136, 0.857434203});
  expect_trajectory(Adagrad{.lr_decay = 0.5F, .weight_decay = 0.1F},
                    {0.9, 0.91717751, 0.873716191});
}

TEST(Optimizer, StateIsNamedAfterItsParameter) {
  Graph graph;
  Builder builder(graph);
  Value* const parameter = graph.add_initializer("w", Tensor::zeros(DType::f32, {2, 3}));
  parameter->is_variable = true;
  const Expr lr = builder.expr(builder.constant(Tensor::scalar(0.1F)));
  const Expr step = builder.expr(builder.constant(Tensor::scalar(std::int64_t{1})));
  const AddedUpdate added =
      add_update(builder, AdamW{}, {parameter, builder.expr(parameter)}, {lr, step});
  EXPECT_EQ(added.parameter->name(), "w.new");
  const std::vector<Value*>& state = added.state;
  ASSERT_EQ(state.size(), 2U);
  EXPECT_EQ(state[0]->name(), "w.mean");
  EXPECT_EQ(state[1]->name(), "w.square");
  for (const Value* value : state) {
    EXPECT_TRUE(value->is_variable);
    EXPECT_EQ(value->known_shape(), Shape({2, 3}));
    EXPECT_THAT(to_double(value->initializer()), ::testing::Each(0.0));
  }
  EXPECT_TRUE(
      add_update(builder, SGD{}, {parameter, builder.expr(parameter)}, {lr, step}).state.empty());
}

TEST(Optimizer, StateInBf16IsForParametersOfF32) {
  Graph graph;
  Builder builder(graph);
  const Expr lr = builder.expr(builder.constant(Tensor::scalar(0.1F)));
  const Expr step = builder.expr(builder.constant(Tensor::scalar(std::int64_t{1})));
  const auto add = [&](const Optimizer& optimizer, DType dtype) {
    Value* const parameter =
        graph.add_initializer(graph.unique_name("w"), Tensor::zeros(dtype, {3}));
    parameter->is_variable = true;
    return add_update(builder, optimizer, {parameter, builder.expr(parameter)}, {lr, step},
                      StatePrecision::bf16);
  };
  for (const std::string& known : optimizer_names()) {
    const AddedUpdate added = add(optimizer_from_name(known), DType::f32);
    EXPECT_EQ(added.parameter->dtype(), DType::f32);
    for (const Value* state : added.state) EXPECT_EQ(state->dtype(), DType::bf16) << known;
  }
  EXPECT_NO_THROW(add(SGD{}, DType::f64)) << "it has no state";
  EXPECT_THROW(add(Adam{}, DType::f64), Error);
  EXPECT_THROW(check(RMSprop{.centered = true}, StatePrecision::bf16), Error);
  EXPECT_NO_THROW(check(RMSprop{.centered = true}, StatePrecision::f32));
  EXPECT_NO_THROW(check(RMSprop{.momentum = 0.9F}, StatePrecision::bf16));
}

TEST(Optimizer, Names) {
  for (const std::string& known : optimizer_names()) {
    EXPECT_EQ(name(optimizer_from_name(known)), known);
  }
  EXPECT_THROW(optimizer_from_name("adamax"), Error);
  Optimizer optimizer = optimizer_from_name("adagrad");
  EXPECT_FLOAT_EQ(learning_rate(optimizer), 0.01F);
  set_learning_rate(optimizer, 0.5F);
  EXPECT_FLOAT_EQ(learning_rate(optimizer), 0.5F);
  EXPECT_THROW(set_momentum(optimizer, 0.9F), Error);
}

/// The graph of one update, printed.
std::string printed_update(const Optimizer& optimizer) {
  Graph graph;
  Builder builder(graph);
  Value* const parameter = graph.add_initializer("w", Tensor::zeros(DType::f32, {2, 3}));
  parameter->is_variable = true;
  const Expr lr = builder.expr(builder.constant(Tensor::scalar(0.1F)));
  const Expr step = builder.expr(builder.constant(Tensor::scalar(std::int64_t{1})));
  add_update(builder, optimizer, {parameter, builder.expr(parameter)}, {lr, step});
  return print(graph);
}

/// A row that leaves out a setting would have it ignored.
template <class T>
void expect_row_lists_all_settings(const T& optimizer) {
  const OptimizerRow<T> row = T::row();
  std::size_t bytes = sizeof(float);  // lr
  for (const OptimizerSetting<T>& setting : row.settings) {
    const bool is_switch = std::holds_alternative<bool T::*>(setting.member);
    bytes += is_switch ? sizeof(bool) : sizeof(float);
    const bool needs_momentum = setting.name == "nesterov";
    Optimizer plain = optimizer;
    if (needs_momentum) set_momentum(plain, 0.25F);
    Optimizer changed = plain;
    set_setting(changed, setting.name, is_switch ? 1.0F : 0.25F);
    EXPECT_NE(printed_update(changed), printed_update(plain))
        << row.name << ": " << setting.name << " changes nothing of the update";
  }
  const std::size_t whole = (bytes + alignof(T) - 1) / alignof(T) * alignof(T);
  EXPECT_EQ(whole, sizeof(T)) << row.name << ": its row lists other settings than it has";
}

TEST(Optimizer, RowsListAllSettings) {
  for (const std::string& known : optimizer_names()) {
    std::visit(
        []<class T>(const T& o) {
          if constexpr (HasRow<T>) expect_row_lists_all_settings(o);
        },
        optimizer_from_name(known));
  }
}

TEST(Optimizer, AreAsManyAsReadmeSays) {
  std::ostringstream readme;
  readme << std::ifstream("README.md").rdbuf();  // tests run in the repository's root
  EXPECT_NE(readme.str().find(text("**", optimizer_names().size(), " optimizers**")),
            std::string::npos);
}

/// Attributes of update ops that no optimizer sets would be dead.
TEST(Optimizer, UpdateOpsHaveTheStateAndTheAttributesOfRows) {
  std::map<std::string_view, std::set<std::string_view>> given;
  const auto note = [&]<HasRow T>(const T& /*optimizer*/) {
    const OptimizerRow<T> row = T::row();
    const OpDef* const op = OpRegistry::instance().find(row.op, kInternalDomain);
    ASSERT_NE(op, nullptr) << row.op;
    constexpr std::size_t kFirstState = 4;
    EXPECT_EQ(op->inputs.size(), kFirstState + row.state.size()) << row.name;
    for (const OptimizerSetting<T>& setting : row.settings) given[row.op].insert(setting.name);
    given[row.op].insert(row.flags.begin(), row.flags.end());
  };
  const auto note_any = [&]<class T>(const T& optimizer) {
    if constexpr (HasRow<T>) note(optimizer);
  };
  for (const std::string& known : optimizer_names()) {
    std::visit(note_any, optimizer_from_name(known));
  }
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (def.product_form.op.empty()) continue;
    EXPECT_TRUE(given.contains(def.name)) << def.name << ": no alternative of Optimizer has it";
  }
  for (const auto& [name, settings] : given) {
    for (const AttributeDef& attribute :
         OpRegistry::instance().find(name, kInternalDomain)->attributes) {
      EXPECT_TRUE(settings.contains(attribute.name)) << name << ": " << attribute.name;
    }
  }
}

TEST(Optimizer, RefusesSettingsWithoutSense) {
  EXPECT_NO_THROW(check(SGD{.momentum = 0.9F, .nesterov = true}));
  EXPECT_THROW(check(SGD{.nesterov = true}), Error);
  EXPECT_THROW(check(SGD{.momentum = -0.9F}), Error);
  EXPECT_THROW(check(Adam{.lr = -1.0F}), Error);
  EXPECT_THROW(check(Adam{.beta1 = 1.0F}), Error);
  EXPECT_THROW(check(AdamW{.weight_decay = -0.1F}), Error);
  EXPECT_THROW(check(RMSprop{.alpha = 1.0F}), Error);
  EXPECT_THROW(check(Adagrad{.lr_decay = -1.0F}), Error);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(check(Adam{.epsilon = kNan}), Error);
  EXPECT_THROW(check(RMSprop{.epsilon = -1.0F}), Error);
  EXPECT_THROW(check(SGD{.momentum = 0.9F, .dampening = kNan}), Error);
  EXPECT_THROW(check(SGD{.weight_decay = std::numeric_limits<float>::infinity()}), Error);
  const auto unchanged = [](const Expr& p, const Expr&, const Expr&, const Expr&,
                            const std::vector<Expr>& state) -> Update {
    return {p, state};
  };
  EXPECT_NO_THROW(check(CustomOptimizer{.state = {"averages"}, .step = unchanged}));
  EXPECT_THROW(check(CustomOptimizer{.state = {"average"}, .step = unchanged}), Error);
}

}  // namespace
}  // namespace graft
