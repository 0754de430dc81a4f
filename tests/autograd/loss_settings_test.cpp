#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "autograd/joint_loss.h"
#include "core/graph/print.h"
#include "core/ops/builder.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

/// The nodes of a loss of predictions and targets that it takes.
std::string built(const Loss& loss) {
  struct Try {
    Shape prediction;
    ValueType target;
  };
  const ValueType floats{DType::f32, SymShape(Shape{4, 3})};
  const ValueType one_each{DType::i64, SymShape(Shape{4})};
  const ValueType two_each{DType::i64, SymShape(Shape{4, 3})};
  for (const Try& one :
       {Try{{4, 3}, floats}, {{4, 3}, one_each}, {{4, 3, 5}, two_each}, {{6, 4, 5}, two_each}}) {
    Graph graph;
    Builder builder(graph);
    Value* const prediction = graph.add_input("prediction", {DType::f32, SymShape(one.prediction)});
    Value* const target = graph.add_input("target", one.target);
    try {
      graph.add_output(add_loss(loss, builder.expr(prediction), builder.expr(target)).value());
    } catch (const Error&) {
      continue;  // it takes others
    }
    return print(graph);
  }
  return "";
}

bool takes(const std::string& spec) {
  try {
    loss_from_spec(spec);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// As loss_from_spec refuses them.
TEST(LossSettings, OfAProgramsOwnAreChecked) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<Loss> refused{huber(-1), huber(0),         huber(kNaN),     huber(kInfinity),
                            kl(0),     kl(-1),           arcface(4, 1),   arcface(0.5F, -1),
                            focal(7),  focal(0.25F, -3), cross_entropy(1)};
  for (const float weight : {-2.0F, kNaN}) {
    refused.push_back(cross_entropy());
    refused.back().class_weights = {1, weight, 3};
    refused.push_back(bce_with_logits());
    refused.back().pos_weight = {weight};
  }
  for (const Loss& loss : refused) EXPECT_EQ(built(loss), "") << loss.name;
  Loss taken = cross_entropy(0.5F);
  taken.class_weights = {1, 0, 3};
  for (const Loss& loss : {taken, huber(2), kl(0.5F), arcface(3, 1), focal(1, 0)}) {
    EXPECT_NE(built(loss), "") << loss.name;
  }
}

/// What a loss does not read is refused, for it would be ignored in silence.
TEST(LossSettings, OfOtherLossesAreRefused) {
  const auto refused = [](const Loss& loss) {
    Graph graph;
    Builder builder(graph);
    const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape(Shape{4, 3})}));
    const Error error = error_of([&] { add_loss(loss, x, x); });
    EXPECT_EQ(error.kind(), ErrorKind::argument) << error.what();
    return std::string(error.what());
  };
  EXPECT_EQ(refused({.name = "dice", .reduction = Reduction::sum}),
            "loss dice: it does not read 'reduction', which is set; wanted dice");
  const std::string of_mse = "'weights', which is set; wanted mse[:reduction=mean|sum]";
  EXPECT_NE(refused({.name = "mse", .class_weights = {1}}).find(of_mse), std::string::npos);
  for (const Loss& loss :
       {Loss{.name = "mse", .label_smoothing = 0.1F}, Loss{.name = "mse", .ignore_index = 0},
        Loss{.name = "mse", .pos_weight = {2}}, Loss{.name = "mse", .margin = 0.5F},
        Loss{.name = "nll", .label_smoothing = 0.1F},
        Loss{.name = "cross_entropy", .pos_weight = {2}}, Loss{.name = "ctc", .ignore_index = 0},
        Loss{.name = "l1", .delta = 2}, Loss{.name = "l1", .blank = 1}}) {
    EXPECT_NE(refused(loss).find("does not read"), std::string::npos) << loss.name;
  }
}

TEST(LossSettings, OfAFormulaMayBeAny) {
  Loss own = custom_loss(
      "own", [](const Expr& x, const Expr& t) { return reduce_mean(x - t, {}, false); });
  own.ignore_index = 255;
  own.class_weights = {1, 2};
  EXPECT_NE(built(own), "");
}

/// What is made by hand may lack what sum_of and graph_loss give it.
TEST(JointLoss, WantsAsManyOfEach) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape(Shape{2})}));
  EXPECT_EQ(kind_of([] { is_in_graph({.name = "graph"}); }), ErrorKind::argument);
  const Loss parts{.name = "parts", .outputs = {"x"}, .parts = {mse()}};
  EXPECT_EQ(kind_of([&] { add_loss(parts, {x}, std::vector<Expr>{x}); }), ErrorKind::argument);
  const Loss sum = sum_of({{"x", mse()}, {"y", cross_entropy()}});
  EXPECT_EQ(kind_of([&] { add_loss(sum, {x}, std::vector<Expr>{x}); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { part_of(sum, 2); }), ErrorKind::argument);
  const std::vector<Tensor> none;
  EXPECT_EQ(kind_of([&] { check_class_targets(sum, none, {0, 3}); }), ErrorKind::argument);
  EXPECT_NO_THROW(check_class_targets(graph_loss("loss"), none, {0}));
}

TEST(Loss, TargetsThatCannotBeCountedAreRefused) {
  Loss loss = cross_entropy();
  loss.ignore_index = 0;
  EXPECT_EQ(kind_of([&] { count_judged(loss, Tensor()); }), ErrorKind::argument);
  loss.class_weights = {1, 2};
  EXPECT_EQ(mean_weight(loss, Tensor::from<std::int64_t>({2}, {0, 1}), 2), 2.0);
  EXPECT_EQ(kind_of([&] { mean_weight(loss, Tensor::from<std::int64_t>({1}, {2}), 1); }),
            ErrorKind::argument);
}

/// A loss that heeds Loss::reduction names it among its settings; all others refuse it.
TEST(LossSpec, NamesTheReductionOfLossesThatHaveOne) {
  for (const std::string& name : loss_names()) {
    Loss mean = loss_from_name(name);
    Loss sum = mean;
    sum.reduction = Reduction::sum;
    ASSERT_NE(built(mean), "") << name;
    EXPECT_NE(built(mean), built(sum)) << name;
    EXPECT_EQ(takes(name + ":reduction=sum"), !built(sum).empty()) << name;
  }
}

std::string page(const std::string& path) {  // tests run in the repository's root
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

TEST(LossNames, AreOnThePagesOfUsers) {
  const std::string losses = page("docs/losses.md");
  const std::string readme = page("README.md");
  for (const std::string& name : loss_names()) {
    EXPECT_NE(losses.find('`' + name + '`'), losses.npos) << name << " is not in docs/losses.md";
    EXPECT_NE(readme.find(name), readme.npos) << name << " is not in README.md";
  }
  EXPECT_NE(readme.find("**" + std::to_string(loss_names().size()) + " losses**"), readme.npos);
}

}  // namespace
}  // namespace graft
