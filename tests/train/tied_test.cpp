#include "train/tied.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ops/builder.h"
#include "data/tensor_dataset.h"
#include "tests/train/nets.h"
#include "train/train_step.h"
#include "train/trainer.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// y = (x A) B with B = A^T, both [2,2]: one parameter written twice.
Model two_products(const std::vector<float>& second) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape(Shape({1, 2}))});
  Value* const a = graph.add_initializer("a", Tensor::from<float>({2, 2}, {1, 2, 3, 4}));
  Value* const b = graph.add_initializer("b", Tensor::from<float>({2, 2}, second));
  Builder builder(graph);
  const Expr y = matmul(matmul(builder.expr(x), builder.expr(a)), builder.expr(b));
  graph.add_output(y.value());
  return model;
}

std::vector<float> content(const Model& model, std::string_view name) {
  const auto values = model.graph().find(name)->initializer().values<const float>();
  return {values.begin(), values.end()};
}

/// x = (1,0): h = xA = (1,2), y = hA^T = (5,11); loss = mean(y^2) against 0, so dy = y = (5,11).
/// dA through the second product: dy^T h = ((5,10),(11,22)); through the first: x^T (dy A), with
/// dy A = (38,54): ((38,54),(0,0)). The sum is ((43,64),(11,22)).
TEST(Tied, TrainsAsOneAndStaysTransposed) {
  Model model = two_products({1, 3, 2, 4});
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.01F}, .tied = {{"a", "b"}}});
  step.run({Tensor::from<float>({1, 2}, {1, 0})}, Tensor::zeros(DType::f32, {1, 2}));
  EXPECT_THAT(step.parameter_names(), ElementsAre("a"));
  EXPECT_THAT(step.changed_names(), ElementsAre("a", "b"));
  const std::vector<float> a = content(model, "a");
  EXPECT_THAT(a, testing::Pointwise(testing::FloatNear(1e-6F),
                                    std::vector<float>{0.57F, 1.36F, 2.89F, 3.78F}));
  EXPECT_THAT(content(model, "b"), ElementsAre(a[0], a[2], a[1], a[3]));
}

/// y = x head^T, head tied to emb: training changes head too, and what is made of it.
TEST(Tied, AnEvaluatorSeesWhatFollowsAParameter) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape(Shape({4, 2}))}));
  const std::vector<float> weights{0.5F, -0.25F, 0.75F, 1.0F};
  const auto parameter = [&](const char* name) {
    return builder.expr(graph.add_initializer(name, Tensor::from<float>({2, 2}, weights)));
  };
  const Expr hidden = tanh(matmul(x, parameter("emb")));
  graph.add_output(matmul(hidden, transpose(parameter("head"), {1, 0})).value());
  Trainer trainer(model, {.optimizer = SGD{.lr = 0.5F}, .tied = {{"emb", "head"}}});
  const Tensor rows = test::random_tensor({4, 2}, 3);
  const Tensor labels = Tensor::from<std::int64_t>({4}, {0, 1, 1, 0});
  DataLoader loader(tensor_dataset({{"x", rows}}, {"y", labels}), {.batch = 4});
  const double before = trainer.evaluate(loader).loss;
  trainer.fit(loader, {.epochs = 20});
  const double after = trainer.evaluate(loader).loss;
  EXPECT_LT(after, before);
  EXPECT_EQ(after, Evaluator(model).run(loader).loss);
}

TEST(Tied, RefusesWhatIsNotOneParameter) {
  const auto error_of = [](Model model, const std::vector<std::vector<std::string>>& groups) {
    try {
      tie_initializers(model.graph(), groups);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of(two_products({1, 3, 2, 5}), {{"a", "b"}}),
              HasSubstr("'b' f32[2,2] holds neither the content of 'a'"));
  EXPECT_THAT(error_of(two_products({1, 3, 2, 4}), {{"a", "c"}}),
              HasSubstr("'c' is no float initializer"));
  EXPECT_THAT(error_of(two_products({1, 3, 2, 4}), {{"a", "b"}, {"b", "a"}}),
              HasSubstr("'b' occurs twice"));
}

}  // namespace
}  // namespace graft
