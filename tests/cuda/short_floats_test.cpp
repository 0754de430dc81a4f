// Nets of f16 and bf16, as they are stored for cards: ops without a kernel of their own for these
// types compute through f32.
#include <gtest/gtest.h>

#include "core/layers/nets.h"
#include "core/ops/builder.h"
#include "core/ops/through_f32.h"
#include "core/runtime/plan.h"
#include "core/runtime/session.h"
#include "tests/cuda/on_card.h"
#include "tests/train/nets.h"
#include "train/change_precision.h"
#include "train/train_step.h"

namespace graft {
namespace {

using test::card;

void expect_near(const Tensor& found, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(found.dtype(), wanted.dtype());
  const std::vector<double> a = to_double(found);
  const std::vector<double> b = to_double(wanted);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
}

TEST(ShortFloats, NetsRunWithoutTheCpu) {
  struct Case {
    const char* net;
    Shape image;
  };
  for (const auto& [net, image] : {Case{"lenet", {1, 16, 16}}, Case{"resnet20", {3, 4, 4}}}) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      Model model = make_net(net, image, 3, 3);
      edit::change_precision(model, dtype);
      std::vector<std::int64_t> dims = image.dims();
      dims.insert(dims.begin(), 2);
      const Tensor x =
          test::random_tensor(Shape(dims), 1).cast(model.graph().inputs().front()->dtype());
      const Tensor wanted = Session(model).run({x}).front();
      Session session(model, {.device = &card()});
      BoundRun bound = session.bind({x.to(card())});
      for (int run = 0; run < 3; ++run) {  // plain, recorded, replayed
        bound.run();
        expect_near(bound.outputs().front().to(cpu()), wanted, dtype == DType::f16 ? 0.01 : 0.08);
      }
    }
  }
}

TEST(ShortFloats, NetsOfF16Train) {
  const auto losses = [](const char* device) {
    Model model = make_net("lenet", {1, 16, 16}, 3, 3);
    edit::change_precision(model, DType::f16);
    TrainStep step(model, {.optimizer = SGD{.lr = 0.05F}, .device = device});
    const Tensor x =
        test::random_tensor({3, 1, 16, 16}, 1).cast(model.graph().inputs().front()->dtype());
    std::vector<float> found;
    for (int i = 0; i < 3; ++i) found.push_back(step.run({x}, test::cyclic_labels(3, 3)));
    return found;
  };
  const std::vector<float> found = losses("cuda:emulated");
  const std::vector<float> wanted = losses("cpu");
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 0.01) << i;
}

TEST(ShortFloats, WhatUpdatesAVariableIsNotConverted) {
  Graph graph("update");
  Value* const v = graph.add_initializer("v", Tensor::zeros(DType::bf16, {3}));
  v->is_variable = true;
  Value* const x = graph.add_input("x", {DType::bf16, SymShape{3}});
  const Node* const node = Builder(graph).node("Assign", kInternalDomain, {v, x}, 1);
  EXPECT_FALSE(prepare_through_f32(*node, card()).run);
}

}  // namespace
}  // namespace graft
