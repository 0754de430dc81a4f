// Training that keeps checkpoints while the disk fails, or that ends just before each of its system
// calls: what lies in the folder is whole, and going on from it ends with the same bits.
#include <gtest/gtest.h>

#include <exception>
#include <system_error>
#include <thread>

#include "core/base/parallel.h"
#include "core/layers/nets.h"
#include "data/tensor_dataset.h"
#include "tests/data/test_files.h"
#include "tests/faults/faults.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace graft::testing {
namespace {

class FaultsOfCheckpoints : public ::testing::Test {
 protected:
  FaultsOfCheckpoints() {
    set_thread_count(1);
    std::thread([] {}).join();
    end_ = train("");
    work_.prepare = [this] { std::filesystem::remove_all(run_); };
    work_.run = [this] { train(""); };
    work_.check = [this](const std::string& /*error*/) { return problem(); };
    work_.after_kill = [this] { return problem(); };
  }

  /// Returns all weights at the end.
  std::vector<Tensor> train(const std::filesystem::path& resume, int epochs = 2) const {
    Model model = make_net("mlp", Shape{1, 2, 2}, 3, 1);
    DataLoader loader(data_, {.batch = 4, .shuffle = true});
    Trainer trainer(model, {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F}});
    const auto checkpoint =
        std::make_shared<Checkpoint>(run_, CheckpointOptions{.monitor = "loss"});
    trainer.fit(loader, {.epochs = epochs, .callbacks = {checkpoint}, .resume = resume});
    std::vector<Tensor> weights;
    for (const Value* const value : model.graph().initializers()) {
      weights.push_back(value->initializer());
    }
    return weights;
  }

  std::string problem() const {
    const std::filesystem::path last = run_ / "last.safetensors";
    for (const std::filesystem::path& path : {last, run_ / "best.safetensors"}) {
      if (std::filesystem::exists(path)) load_training_state(path);  // or it says what is torn
    }
    const std::vector<Tensor> now = train(std::filesystem::exists(last) ? last : "");
    return std::ranges::equal(now, end_, equal_bits) ? "" : "another end";
  }

  TempFolder folder_;
  std::filesystem::path run_ = folder_.path() / "run";
  std::shared_ptr<Dataset> data_ =
      tensor_dataset({{"x", Tensor::full(DType::f32, {10, 1, 2, 2}, 0.5)}},
                     {"y", Tensor::full(DType::i64, {10}, 1)}, 3);
  std::vector<Tensor> end_;
  Work work_;
};

TEST_F(FaultsOfCheckpoints, CallsThatFail) {
  EXPECT_GT(meet_every(Fault::failed_call, work_), 50);
}

TEST_F(FaultsOfCheckpoints, CallsThatAreInterruptedOrShort) {
  EXPECT_GT(meet_every(Fault::interrupted_call, work_), 30);
  EXPECT_GT(meet_every(Fault::short_call, work_), 20);
}

TEST_F(FaultsOfCheckpoints, ProcessesThatEnd) {
  EXPECT_GT(meet_every(Fault::killed, work_), 50);
}

TEST_F(FaultsOfCheckpoints, MemoryThatIsNotThere) {
  EXPECT_GT(meet_every(Fault::no_memory, work_), 50);
}

TEST_F(FaultsOfCheckpoints, ClocksThatJump) {
  work_.run = [this] {
    if (!std::ranges::equal(train(""), end_, equal_bits)) fail(ErrorKind::argument, "another end");
  };
  EXPECT_GT(meet_every(Fault::clock_ahead, work_), 10);
  EXPECT_GT(meet_every(Fault::clock_back, work_), 10);
}

/// The threads of loops end with the thread that asks for them.
TEST_F(FaultsOfCheckpoints, ThreadsThatDoNotStart) {
  work_.run = [this] {
    std::exception_ptr thrown;
    try {
      std::thread([&] {
        set_thread_count(3);
        try {
          train("");
        } catch (...) {
          thrown = std::current_exception();
        }
      }).join();
    } catch (const std::system_error& error) {
      fail(ErrorKind::memory, error.what());  // this test's own thread
    }
    if (thrown) std::rethrow_exception(thrown);
  };
  work_.run();  // what is made once is made here
  work_.check = [this](const std::string&) {
    set_thread_count(1);
    return problem();
  };
  EXPECT_GT(meet_every(Fault::failed_call, work_), 50);
}

/// Going on from a checkpoint.
class FaultsOfResuming : public FaultsOfCheckpoints {
 protected:
  FaultsOfResuming() {
    work_.prepare = [this] {
      std::filesystem::remove_all(run_);
      train("", 1);
    };
    work_.run = [this] { train(run_ / "last.safetensors"); };
    work_.prepare();
    work_.run();
  }
};

TEST_F(FaultsOfResuming, CallsThatFail) {
  EXPECT_GT(meet_every(Fault::failed_call, work_), 50);
}

TEST_F(FaultsOfResuming, MemoryThatIsNotThere) {
  EXPECT_GT(meet_every(Fault::no_memory, work_), 50);
}

TEST_F(FaultsOfResuming, ProcessesThatEnd) {
  EXPECT_GT(meet_every(Fault::killed, work_), 50);
}

TEST_F(FaultsOfResuming, AFileThatChangesWhileItIsRead) {
  work_.check = [](const std::string&) { return ""; };  // what it holds now, nobody promised
  EXPECT_GT(meet_every(Fault::cut_file, work_), 3);
  EXPECT_GT(meet_every(Fault::longer_file, work_), 3);
}

}  // namespace
}  // namespace graft::testing
