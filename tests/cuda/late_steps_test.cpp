// Steps whose results are read while the next one runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>

#include "core/device/cuda/emulated/emulator.h"
#include "core/graph/model.h"
#include "core/ops/builder.h"
#include "core/runtime/plan.h"
#include "data/tensor_dataset.h"
#include "tests/core/error_of.h"
#include "tests/cuda/on_card.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "train/checkpoint.h"
#include "train/monitor.h"
#include "train/run_log.h"
#include "train/trainer.h"

namespace graft {
namespace {

using test::card;
using ::testing::HasSubstr;

/// Streams run in another order while it lives.
class StreamOrder {
 public:
  explicit StreamOrder(std::uint64_t seed) { emulated::set_stream_order(seed); }
  ~StreamOrder() { emulated::set_stream_order(0); }
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;
};

/// variable += x
std::unique_ptr<Graph> sum_up(const Tensor& variable) {
  auto graph = std::make_unique<Graph>("sum_up");
  Value* const x = graph->add_input("x", {DType::f32, SymShape(variable.shape())});
  Value* const v = graph->add_initializer("v", variable);
  v->is_variable = true;
  Builder builder(*graph);
  Value* const sum = builder.node("Add", "", {v, x}, 1)->output();
  graph->add_output(builder.node("Assign", kInternalDomain, {v, sum}, 1)->output());
  return graph;
}

/// Each bit of the sum says of one batch that it arrived, once.
TEST(LateSteps, TakeEachBatchThoughItsMemoryChangesAtOnce) {
  for (const bool on_host : {true, false}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const StreamOrder order(seed);
      const Tensor sum = Tensor::zeros(DType::f32, {3}, card());
      Plan plan(sum_up(sum), {.device = &card(), .starts = true});
      const Tensor x = Tensor::zeros(DType::f32, {3}, on_host ? cpu() : card());
      for (int i = 0; i < 7; ++i) {
        x.copy_from(Tensor::full(DType::f32, {3}, 1 << i));
        plan.start({{x}});
      }
      if (on_host) x.copy_from(Tensor::full(DType::f32, {3}, 1000.0));
      EXPECT_THAT(to_double(sum.to(cpu())), ::testing::Each(127.0)) << "order " << seed;
    }
  }
}

TEST(LateSteps, APlanThatGoesWaitsForWhatIsOnItsWay) {
  const Tensor sum = Tensor::zeros(DType::f32, {3}, card());
  {
    Plan plan(sum_up(sum), {.device = &card(), .starts = true});
    plan.start({{Tensor::full(DType::f32, {3}, 2.0)}});
  }
  EXPECT_THAT(to_double(sum.to(cpu())), ::testing::Each(2.0));
}

/// x [n,1,2,2] to scores of three classes: small, since each element is a thread of the emulator.
Model small_net() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape({Dim("n"), Dim(1), Dim(2), Dim(2)})});
  Value* const rows = graph.add_node("Flatten", "", {x}, {"rows"})->output();
  Value* const w = graph.add_initializer("w", test::random_tensor({4, 5}, 1));
  Value* const b = graph.add_initializer("b", test::random_tensor({5}, 2));
  Value* const v = graph.add_initializer("v", test::random_tensor({5, 3}, 3));
  Value* const h = graph.add_node("Gemm", "", {rows, w, b}, {"h"})->output();
  Value* const r = graph.add_node("Relu", "", {h}, {"r"})->output();
  graph.add_output(graph.add_node("MatMul", "", {r, v}, {"y"})->output());
  return model;
}

constexpr std::int64_t kSamples = 44;

std::shared_ptr<const Dataset> data(float first_of_ninth = 0.5F) {
  const Tensor images = test::random_tensor({kSamples, 1, 2, 2}, 5);
  images.values<float>()[9 * 4] = first_of_ninth;
  return tensor_dataset({{"x", images}}, {"y", test::cyclic_labels(kSamples, 3)});
}

/// Keeps what the steps say; `looks` decides whether the card waits for it.
class Diary : public Callback {
 public:
  explicit Diary(bool looks) : looks_(looks) {}
  void on_step(Run& run, const Progress& progress) override {
    losses.push_back(progress.step.loss);
    accuracies.push_back(progress.step.accuracy.value());
    ahead.push_back(run.trainer.train_step().updates() - progress.updates);
  }
  bool looks_at_step(const Run& /*run*/) override { return looks_; }

  std::vector<double> losses;
  std::vector<double> accuracies;
  std::vector<std::int64_t> ahead;

 private:
  bool looks_;
};

struct Trained {
  std::shared_ptr<Diary> diary;
  std::vector<Tensor> weights;
  Evaluation validation;
};

Trained train(const std::string& device, bool looks) {
  Model model = small_net();
  Trainer trainer(model, {.optimizer = Adam{.lr = 0.02F}, .device = device});
  DataLoader loader(data(), {.batch = 8, .shuffle = true, .seed = 3});
  DataLoader held_back(data(), {.batch = 10});
  auto diary = std::make_shared<Diary>(looks);
  const auto reports =
      trainer.fit(loader, {.epochs = 2, .validation = &held_back, .callbacks = {diary}});
  return {diary, test::snapshot(model), *reports.back().validation};
}

TEST(LateSteps, SayAndDoWhatStepsDoThatAreWaitedFor) {
  const Trained waited_for = train("cuda:emulated", true);
  const Trained here = train("cpu", false);
  EXPECT_THAT(waited_for.diary->ahead, ::testing::Each(0));
  EXPECT_THAT(here.diary->ahead, ::testing::Each(0));
  for (const std::uint64_t seed : {0, 1, 2}) {
    const StreamOrder order(seed);
    const Trained late = train("cuda:emulated", false);
    EXPECT_EQ(late.diary->losses, waited_for.diary->losses);
    EXPECT_EQ(late.diary->accuracies, here.diary->accuracies);
    EXPECT_EQ(late.validation.loss, waited_for.validation.loss);
    EXPECT_EQ(late.validation.accuracy, here.validation.accuracy);
    for (std::size_t i = 0; i < late.weights.size(); ++i) {
      EXPECT_TRUE(equal_bits(late.weights[i], waited_for.weights[i])) << i;
    }
    // Six batches an epoch, the last of which nothing follows.
    EXPECT_THAT(late.diary->ahead, ::testing::ElementsAre(1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0));
  }
}

TEST(LateSteps, AreTwoHalvesOfAStepForLoopsByHand) {
  for (const char* const device : {"cuda:emulated", "cpu"}) {
    Model model = small_net();
    Model same = small_net();
    Trainer late(model, {.optimizer = Adam{.lr = 0.02F}, .device = device});
    Trainer waited_for(same, {.optimizer = Adam{.lr = 0.02F}, .device = device});
    EXPECT_EQ(late.overlaps(), device != std::string("cpu"));
    DataLoader loader(data(), {.batch = 8});
    std::vector<Trainer::Started> started;
    std::vector<StepReport> wanted;
    for (const Batch& batch : loader) {
      started.push_back(late.start(batch));
      wanted.push_back(waited_for.step(batch));
    }
    for (std::size_t i = 0; i < started.size(); ++i) {
      const StepReport found = late.finish(started[i]);
      EXPECT_EQ(found.loss, wanted[i].loss) << device << ", step " << i;
      EXPECT_EQ(found.accuracy, wanted[i].accuracy) << device << ", step " << i;
      EXPECT_EQ(found.samples, wanted[i].samples) << device << ", step " << i;
    }
  }
}

std::vector<std::int64_t> ahead_beside(
    const std::function<std::vector<std::shared_ptr<Callback>>(const std::filesystem::path&)>&
        callbacks) {
  const testing::TempFolder folder;
  std::vector<std::shared_ptr<Callback>> all = callbacks(folder.path());
  auto diary = std::make_shared<Diary>(false);
  all.push_back(diary);
  Model model = small_net();
  Trainer trainer(model, {.device = "cuda:emulated"});
  DataLoader loader(data(), {.batch = 11});
  trainer.fit(loader, {.callbacks = all});
  return diary->ahead;
}

TEST(LateSteps, WaitForACheckpointThatIsDueAndForNoOtherCallbackOfOurs) {
  EXPECT_THAT(ahead_beside([](const auto& folder) {
                return std::vector<std::shared_ptr<Callback>>{
                    std::make_shared<Checkpoint>(folder), std::make_shared<RunLog>(folder),
                    std::make_shared<TensorBoardLog>(folder),
                    std::make_shared<EarlyStopping>(EarlyStopping::Options{}),
                    std::make_shared<ReduceOnPlateau>(ReduceOnPlateau::Options{})};
              }),
              ::testing::ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(ahead_beside([](const auto& folder) {
                return std::vector<std::shared_ptr<Callback>>{
                    std::make_shared<Checkpoint>(folder, CheckpointOptions{.minutes = 1e-9})};
              }),
              ::testing::ElementsAre(0, 0, 0, 0));
}

std::size_t waits_of_epoch(std::int64_t batch) {
  Model model = small_net();
  Trainer trainer(model, {.device = "cuda:emulated"});
  DataLoader loader(data(), {.batch = batch});
  DataLoader held_back(data(), {.batch = batch});
  const std::size_t before = emulated::stream_waits();
  trainer.fit(loader, {.validation = &held_back});
  return emulated::stream_waits() - before;
}

TEST(LateSteps, NeverWaitForTheWholeDevice) {
  EXPECT_EQ(waits_of_epoch(22), waits_of_epoch(2)) << "2 and 22 batches, trained on and measured";
}

TEST(LateSteps, AnInfiniteLossIsSaidOfItsOwnStep) {
  Model model = small_net();
  Trainer trainer(model, {.device = "cuda:emulated"});
  DataLoader loader(data(std::numeric_limits<float>::quiet_NaN()), {.batch = 8});
  const Error error = error_of([&] { trainer.fit(loader); });
  EXPECT_EQ(error.kind(), ErrorKind::numeric);
  EXPECT_THAT(error.what(), HasSubstr("the loss is nan in step 2 (epoch 1, batch 2 of 6)"));
  EXPECT_EQ(trainer.train_step().updates(), 3) << "the next was under way";
  DataLoader good(data(), {.batch = 8});
  EXPECT_EQ(kind_of([&] { trainer.step(*good.begin()); }), ErrorKind::numeric) << "weights are NaN";
}

TEST(LateSteps, EndWhereTheyAreToldTo) {
  const auto updates = [](FitOptions options) {
    Model model = small_net();
    Trainer trainer(model, {.device = "cuda:emulated"});
    DataLoader loader(data(), {.batch = 4});
    const auto reports = trainer.fit(loader, options);
    EXPECT_EQ(reports.back().samples, 4 * trainer.train_step().updates());
    return trainer.train_step().updates();
  };
  EXPECT_EQ(updates({.on_step = [](const Progress& step) { return step.batch < 3; }}), 3);
  int asked = 0;
  EXPECT_EQ(updates({.goes_on = [&] { return ++asked < 3; }}), 4) << "the fourth was under way";
}

/// y = x w v, of which w, of 4 MiB, stays as it is.
TEST(LateSteps, AFrozenMatrixIsOnTheCardOnceForAllBatches) {
  constexpr std::int64_t kWide = 1024;
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape({Dim("n"), Dim(kWide)})});
  Value* const w = graph.add_initializer("w", test::random_tensor({kWide, kWide}, 1));
  Value* const v = graph.add_initializer("v", test::random_tensor({kWide, 2}, 2));
  Value* const h = graph.add_node("MatMul", "", {x, w}, {"h"})->output();
  graph.add_output(graph.add_node("MatMul", "", {h, v}, {"y"})->output());
  TrainStep step(model, {.loss = mse(), .freeze = "w", .device = "cuda:emulated"});
  const auto taken_by_batch = [&](std::int64_t batch) {
    const std::size_t before = card().free_bytes();
    step.run({test::random_tensor({batch, kWide}, 3)}, Tensor::zeros(DType::f32, {batch, 2}));
    return before - card().free_bytes();
  };
  constexpr std::size_t kBytes = sizeof(float) * kWide * kWide;
  EXPECT_GT(taken_by_batch(1), kBytes);
  EXPECT_LT(taken_by_batch(2), kBytes);
}

TEST(LateSteps, CountTheRightPredictionsOnTheCard) {
  for (const std::int64_t ignored : {-1, 1}) {
    Model model = small_net();
    Loss loss = cross_entropy();
    if (ignored >= 0) loss.ignore_index = ignored;
    TrainStep step(model, {.loss = loss, .device = "cuda:emulated", .counts_correct = true});
    const Tensor labels = test::cyclic_labels(30, 3);
    std::vector<StartedStep> started;
    std::vector<std::int64_t> wanted;
    for (const std::uint64_t seed : {1, 2, 3}) {
      started.push_back(step.start({test::random_tensor({30, 1, 2, 2}, seed)}, labels));
      wanted.push_back(count_correct(step.prediction(), labels, 1, ignored));
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(started[i].correct(), wanted[i]);
  }
}

}  // namespace
}  // namespace graft
