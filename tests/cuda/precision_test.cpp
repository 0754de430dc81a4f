// --precision on a card: what tensor cores may round, and that nothing else needs another kernel.
#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/layers/nets.h"
#include "core/passes/pass.h"
#include "tests/cuda/on_card.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

const Shape kImage{1, 20, 20};

std::vector<float> losses(const std::string& device, Precision precision) {
  Model model = make_net("lenet", kImage, 3, 1);
  TrainOptions options{.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F}, .device = device};
  options.precision = precision;
  TrainStep step(model, options);
  std::vector<float> found;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Tensor images = test::random_tensor({8, 1, 20, 20}, seed);
    found.push_back(step.run({images}, test::cyclic_labels(8, 3)));
  }
  return found;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted, float by) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], by) << i;
}

TEST(PrecisionOnCard, EachTrainsWithoutFallback) {
  const std::vector<float> wanted = losses("cpu", Precision::f32);
  const std::vector<float> f32 = losses("cuda:emulated", Precision::f32);
  const std::vector<float> tf32 = losses("cuda:emulated", Precision::tf32);
  const std::vector<float> bf16 = losses("cuda:emulated", Precision::bf16);
  expect_near(f32, wanted, 2e-4F);
  expect_near(tf32, wanted, 1e-2F);
  expect_near(bf16, wanted, 5e-2F);
  EXPECT_NE(tf32, f32) << "nothing was rounded";
  EXPECT_NE(bf16, f32) << "nothing was rounded";
  EXPECT_EQ(losses("cuda:emulated", Precision::bf16), bf16) << "another run";
}

TEST(PrecisionOnCard, TheCpuHasNoTf32) {
  EXPECT_EQ(losses("cpu", Precision::tf32), losses("cpu", Precision::f32));
}

TEST(ComputeInTf32, MarksProductsOfF32Alone) {
  Graph graph("net");
  Value* const x = graph.add_input("x", {DType::f32, SymShape(Shape({2, 3}))});
  Value* const w = graph.add_input("w", {DType::f32, SymShape(Shape({3, 2}))});
  Value* const y = graph.add_node("MatMul", "", {x, w}, {"y"})->output();
  graph.add_output(graph.add_node("Relu", "", {y}, {"z"})->output());
  passes::infer_shapes(graph);
  EXPECT_FALSE(passes::compute_in_tf32(graph, cpu()));
  EXPECT_TRUE(passes::compute_in_tf32(graph, test::card()));
  EXPECT_EQ(print(graph), R"(net(x: f32[2,3], w: f32[3,2]) -> (z: f32[2,2])
  y: f32[2,2] = MatMul(x, w) {tf32 = 1}
  z: f32[2,2] = Relu(y)
)");
}

}  // namespace
}  // namespace graft
