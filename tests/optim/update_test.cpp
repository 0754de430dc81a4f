#include "optim/update.h"

#include <gmock/gmock.h>

#include "tests/core/error_of.h"

namespace graft {
namespace {

using ::testing::HasSubstr;

using State = std::vector<Expr>;

/// Adds the update of a parameter f32[2,3] by this formula.
class CustomUpdate : public testing::Test {
 protected:
  AddedUpdate add(const CustomOptimizer& optimizer) {
    parameter_->is_variable = true;
    return add_update(builder_, optimizer, {parameter_, builder_.expr(parameter_)},
                      {builder_.expr(builder_.constant(Tensor::scalar(0.1F))),
                       builder_.expr(builder_.constant(Tensor::scalar(std::int64_t{1})))});
  }
  Error error(const CustomOptimizer& optimizer) {
    return error_of([&] { add(optimizer); });
  }

  Graph graph_;
  Builder builder_{graph_};
  Value* parameter_ = graph_.add_initializer("w", Tensor::zeros(DType::f32, {2, 3}));
};

TEST_F(CustomUpdate, GetsTheTypesThatItsCommentSays) {
  const AddedUpdate added = add({.state = {"a", "b"},
                                 .step = [](const Expr& p, const Expr& g, const Expr& lr,
                                            const Expr& t, const State& state) -> Update {
                                   EXPECT_EQ(text(p.value()->type()), "f32[2,3]");
                                   EXPECT_EQ(text(g.value()->type()), "f32[2,3]");
                                   EXPECT_EQ(text(lr.value()->type()), "f32[]");
                                   EXPECT_EQ(text(t.value()->type()), "f64[]");
                                   EXPECT_EQ(state.size(), 2U);
                                   return {p - lr * g, {state[0] + g, state[1]}};
                                 }});
  ASSERT_EQ(added.state.size(), 2U);
  EXPECT_EQ(added.state[0]->name(), "w.a");
  EXPECT_EQ(added.state[1]->name(), "w.b");
  EXPECT_TRUE(added.state[1]->is_variable);
  EXPECT_TRUE(added.parameter->producer()->is("Assign", kInternalDomain));
  EXPECT_EQ(added.parameter->producer()->input(0), parameter_);
}

TEST_F(CustomUpdate, RefusesResultsOfOtherTypesShapesAndNumber) {
  const Error type = error({.step = [](const Expr& p, const Expr&, const Expr&, const Expr&,
                                       const State&) -> Update { return {cast(p, DType::f64)}; }});
  EXPECT_EQ(type.kind(), ErrorKind::type);
  EXPECT_THAT(type.what(), HasSubstr("the formula makes f64[2,3] of 'w', wanted f32[2,3]"));

  const Error shape =
      error({.step = [](const Expr& p, const Expr&, const Expr&, const Expr&,
                        const State&) -> Update { return {reduce_sum(p, {}, false)}; }});
  EXPECT_EQ(shape.kind(), ErrorKind::shape);
  EXPECT_THAT(shape.what(), HasSubstr("f32[] of 'w', wanted f32[2,3]"));

  const Error count = error({.state = {"a", "b"},
                             .step = [](const Expr& p, const Expr&, const Expr&, const Expr&,
                                        const State& state) -> Update {
                               return {p, {state[0]}};
                             }});
  EXPECT_EQ(count.kind(), ErrorKind::argument);
  EXPECT_THAT(count.what(), HasSubstr("gives a parameter and 1 states, wanted a parameter and 2"));

  const Error nothing = error({.step = [](const Expr&, const Expr&, const Expr&, const Expr&,
                                          const State&) -> Update { return {}; }});
  EXPECT_THAT(nothing.what(), HasSubstr("gives no parameter"));
}

TEST(CustomOptimizer, SettingsAreChecked) {
  const auto step = [](const Expr& p, const Expr&, const Expr&, const Expr&,
                       const State&) -> Update { return {p}; };
  EXPECT_NO_THROW(check(CustomOptimizer{.state = {"a", "b"}, .step = step}));
  const auto refusal = [](const Optimizer& optimizer) {
    return std::string(error_of([&] { check(optimizer); }).what());
  };
  EXPECT_THAT(refusal(CustomOptimizer{}), HasSubstr("step is empty"));
  EXPECT_THAT(refusal(CustomOptimizer{.lr = -1.0F, .step = step}), HasSubstr("lr is -1"));
  EXPECT_THAT(refusal(CustomOptimizer{.state = {"a", "a"}, .step = step}), HasSubstr("'a'"));
  EXPECT_EQ(kind_of([&] { check(CustomOptimizer{.step = step}, StatePrecision::bf16); }),
            ErrorKind::unsupported);
  Optimizer optimizer = CustomOptimizer{.step = step};
  EXPECT_EQ(name(optimizer), "custom");
  set_learning_rate(optimizer, 0.5F);
  EXPECT_FLOAT_EQ(learning_rate(optimizer), 0.5F);
  EXPECT_THAT(error_of([&] { set_weight_decay(optimizer, 0.1F); }).what(),
              HasSubstr("optimizer custom has no weight_decay setting"));
}

}  // namespace
}  // namespace graft
