#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "autograd/joint_loss.h"
#include "core/graph/print.h"
#include "core/ops/builder.h"

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

/// A loss that heeds Loss::reduction names it among its settings, and no other does.
TEST(LossSpec, NamesTheReductionOfLossesThatHaveOne) {
  for (const std::string& name : loss_names()) {
    Loss mean = loss_from_name(name);
    Loss sum = mean;
    sum.reduction = Reduction::sum;
    ASSERT_NE(built(mean), "") << name;
    EXPECT_EQ(takes(name + ":reduction=sum"), built(mean) != built(sum)) << name;
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
