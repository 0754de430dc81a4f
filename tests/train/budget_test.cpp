// A step within a byte budget: the same bits, the bytes that were promised, and a refusal that says
// what would work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layers/nets.h"
#include "core/ops/builder.h"
#include "tests/core/error_of.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

using testing::HasSubstr;

/// x [N,16], `depth` times tanh(x w), each with a w of its own; two Dropouts where asked for.
Model deep_net(int depth, bool drops) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 16}}));
  for (int i = 0; i < depth; ++i) {
    Tensor weight = test::random_tensor({16, 16}, static_cast<std::uint64_t>(i) + 1);
    for (float& value : weight.values<float>()) value *= 0.4F;
    Value* const w = graph.add_initializer("w" + std::to_string(i), std::move(weight));
    x = tanh(matmul(x, builder.expr(w)));
    if (drops && i % 4 == 1) x = call("Dropout", {x});
  }
  graph.add_output(x.value());
  return model;
}

/// A weight of the net, with numbers of its own.
Expr weight(Builder& builder, const Shape& shape) {
  Graph& graph = builder.graph();
  const auto seed = static_cast<std::uint64_t>(graph.initializers().size()) + 1;
  Tensor numbers = test::random_tensor(shape, seed);
  for (float& value : numbers.values<float>()) value *= 0.1F;
  return builder.expr(graph.add_initializer(text("w", seed), std::move(numbers)));
}

/// x [N,128], `depth` times x + gelu(x w1) w2: hidden values that are kept for the gradient.
Model feed_forward_net(int depth) {
  Model model;
  model.set_opset("", 20);
  Graph& graph = model.graph();
  Builder builder(graph);
  Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 128}}));
  for (int i = 0; i < depth; ++i) {
    const Expr hidden = call("Gelu", {matmul(x, weight(builder, {128, 256}))});
    x = x + matmul(hidden, weight(builder, {256, 128}));
  }
  graph.add_output(x.value());
  return model;
}

/// x [N,32,64], `depth` layers of attention by 4 heads and a feed-forward part, each behind its sum
/// normalized; the mean over the sequence.
Model transformer(int depth) {
  Model model;
  model.set_opset("", 23);
  Graph& graph = model.graph();
  Builder builder(graph);
  Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 32, 64}}));
  const auto normalized = [&](const Expr& sum) {
    return call("LayerNormalization", {sum, weight(builder, {64}), weight(builder, {64})});
  };
  const auto project = [&](const Expr& rows) { return matmul(rows, weight(builder, {64, 64})); };
  for (int i = 0; i < depth; ++i) {
    const Expr heads = call("Attention", {project(x), project(x), project(x)},
                            {{"q_num_heads", 4}, {"kv_num_heads", 4}});
    x = normalized(x + project(heads));
    const Expr hidden = call("Gelu", {matmul(x, weight(builder, {64, 256}))});
    x = normalized(x + matmul(hidden, weight(builder, {256, 64})));
  }
  graph.add_output(reduce_mean(x, {1}, false).value());
  return model;
}

/// x [N,32,8,8], `depth` convolutions of 3x3 with a Relu behind each; the mean over the image.
Model convolutions(int depth) {
  Model model;
  model.set_opset("", 20);
  Graph& graph = model.graph();
  Builder builder(graph);
  Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 32, 8, 8}}));
  const std::vector<std::int64_t> pads{1, 1, 1, 1};
  for (int i = 0; i < depth; ++i) {
    x = call("Relu", {call("Conv", {x, weight(builder, {32, 32, 3, 3})}, {{"pads", pads}})});
  }
  graph.add_output(reduce_mean(x, {2, 3}, false).value());
  return model;
}

struct Outcome {
  std::vector<float> losses;
  std::vector<Tensor> weights;
  std::size_t arena_bytes;
};

Outcome train(Model model, const Shape& batch, TrainOptions options, std::uint64_t steps = 3) {
  TrainStep step(model, std::move(options));
  Outcome run{};
  for (std::uint64_t seed = 1; seed <= steps; ++seed) {
    run.losses.push_back(
        step.run({test::random_tensor(batch, seed)}, test::cyclic_labels(batch[0], 10)));
  }
  run.weights = test::snapshot(model);
  run.arena_bytes = step.arena_bytes();
  return run;
}

/// A budget so large that nothing is computed again.
TrainOptions all_kept(TrainOptions options) {
  options.memory_budget = std::size_t{1} << 40;
  return options;
}

void expect_equal(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    EXPECT_TRUE(equal_bits(a.weights[i], b.weights[i])) << i;
  }
}

/// The number behind "at least" in the refusal of a budget of one byte.
std::size_t least_budget(const Model& model, const Shape& batch, TrainOptions options = {}) {
  options.memory_budget = 1;
  const Error error = error_of([&] { train(model.clone(), batch, options); });
  EXPECT_EQ(error.kind(), ErrorKind::memory);
  const std::string text = error.what();
  constexpr std::string_view kLead = "at least ";
  const std::size_t at = text.find(kLead);
  if (at == std::string::npos) {
    ADD_FAILURE() << text;
    return 0;
  }
  return std::stoull(text.substr(at + kLead.size()));
}

struct Case {
  std::string net;
  Shape batch;
  Optimizer optimizer;
  Precision precision = Precision::f32;
};

void PrintTo(const Case& one, std::ostream* out) {  // Google Test's name for it
  *out << one.net;
}

Model make(const Case& one) {
  if (one.net == "deep") return deep_net(12, true);
  if (one.net == "feed_forward") return feed_forward_net(6);
  if (one.net == "transformer") return transformer(3);
  if (one.net == "convolutions") return convolutions(6);
  return make_net(
      one.net,
      Shape(std::vector<std::int64_t>(one.batch.dims().begin() + 1, one.batch.dims().end())), 10,
      3);
}

class Budget : public testing::TestWithParam<Case> {};

TEST_P(Budget, GivesTheSameBitsWithFewerBytes) {
  const Case& one = GetParam();
  const TrainOptions options{.optimizer = one.optimizer, .precision = one.precision};
  const Outcome whole = train(make(one), one.batch, all_kept(options));
  const std::size_t least = least_budget(make(one), one.batch, options);
  ASSERT_LT(least, whole.arena_bytes * 4 / 5);
  for (const std::size_t budget : {(least + whole.arena_bytes) / 2, least + least / 8, least}) {
    TrainOptions tight = options;
    tight.memory_budget = budget;
    const Outcome fitted = train(make(one), one.batch, tight);
    EXPECT_LE(fitted.arena_bytes, budget);
    expect_equal(whole, fitted);
    tight.poison = true;
    expect_equal(whole, train(make(one), one.batch, tight));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Nets, Budget,
    testing::Values(Case{"deep", {256, 16}, SGD{.lr = 0.1F, .momentum = 0.9F}},
                    // bf16 weights, made of ones that are updated before
                    // the last reader.
                    Case{"convolutions", {8, 32, 8, 8}, SGD{.lr = 0.1F}, Precision::bf16},
                    Case{"feed_forward", {256, 128}, SGD{.lr = 0.1F}},
                    Case{"transformer", {8, 32, 64}, AdamW{}},
                    Case{"resnet20", {6, 3, 16, 16}, AdamW{}},
                    Case{"mobilenetv2", {2, 3, 32, 32}, SGD{.lr = 0.01F}}),
    [](const auto& one) { return one.param.net; });

TEST(MemoryBudget, WithoutABudgetALargeStepDoesNotKeepCheapValues) {
  const Case one{"resnet20", {48, 3, 32, 32}, SGD{.lr = 0.1F, .momentum = 0.9F}};
  const TrainOptions options{.optimizer = one.optimizer};
  const Outcome kept = train(make(one), one.batch, all_kept(options), 1);
  const Outcome plain = train(make(one), one.batch, options, 1);
  EXPECT_LT(plain.arena_bytes, kept.arena_bytes * 9 / 10);
  expect_equal(kept, plain);
}

TEST(MemoryBudget, WithoutABudgetASmallStepKeepsEverything) {
  const Case one{"resnet20", {6, 3, 16, 16}, SGD{.lr = 0.1F, .momentum = 0.9F}};
  const TrainOptions options{.optimizer = one.optimizer};
  EXPECT_EQ(train(make(one), one.batch, options, 1).arena_bytes,
            train(make(one), one.batch, all_kept(options), 1).arena_bytes);
}

TEST(MemoryBudget, ClippedGradientsWaitForTheirNorm) {
  const TrainOptions options{.optimizer = SGD{.lr = 0.1F}, .clip = {.norm = 0.1F}};
  const Outcome whole = train(deep_net(8, false), {256, 16}, options);
  TrainOptions tight = options;
  tight.memory_budget = whole.arena_bytes * 7 / 10;
  expect_equal(whole, train(deep_net(8, false), {256, 16}, tight));
}

TEST(MemoryBudget, TheLeastBytesThatARefusalNamesAreEnough) {
  const Model model = deep_net(12, false);
  const Shape batch{256, 16};
  const std::size_t least = least_budget(model, batch);
  EXPECT_LE(train(model.clone(), batch, {.memory_budget = least}).arena_bytes, least);
  EXPECT_EQ(kind_of([&] { train(model.clone(), batch, {.memory_budget = least - 1}); }),
            ErrorKind::memory);
}

TEST(MemoryBudget, ARefusalNamesTheLargestBatchThatFits) {
  const Model model = deep_net(12, false);
  const std::size_t budget = least_budget(model, {100, 16});
  const Error error = error_of([&] { train(model.clone(), {128, 16}, {.memory_budget = budget}); });
  EXPECT_THAT(error.what(), HasSubstr("this one is 128"));
  const std::string text = error.what();
  const std::int64_t named = std::stoll(text.substr(text.find("a batch of ") + 11));
  EXPECT_GE(named, 100);
  train(model.clone(), {named, 16}, {.memory_budget = budget});
}

TEST(MemoryBudget, TheLeastGrowsAsTheRootOfTheDepth) {
  constexpr double kLayerBytes = 256 * 16 * sizeof(float);
  for (const int root : {4, 8, 16}) {
    const std::size_t least = least_budget(deep_net(root * root, false), {256, 16});
    EXPECT_LT(static_cast<double>(least), 3 * root * kLayerBytes) << root * root << " layers";
  }
}

}  // namespace
}  // namespace graft
