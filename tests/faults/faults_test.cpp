// Saving, loading and training while memory, disk and processes fail.
#include "tests/faults/faults.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/base/parallel.h"
#include "core/layers/nets.h"
#include "data/loader.h"
#include "io/file.h"
#include "io/npz.h"
#include "io/onnx.h"
#include "tests/data/test_files.h"
#include "train/data_spec.h"
#include "train/trainer.h"

namespace graft::testing {
namespace {

using std::filesystem::path;
using ::testing::HasSubstr;

std::set<std::string> names_in(const path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::string listed(const std::set<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += " " + name;
  return list;
}

/// All of its parameters hold `element`.
Model model_of(float element) {
  Model model = make_net("mlp", Shape{1, 4, 4}, 3, 1);
  for (Value* const value : model.graph().initializers()) {
    if (value->initializer().dtype() != DType::f32) continue;
    const Tensor tensor = value->initializer();
    std::ranges::fill(tensor.values<float>(), element);
  }
  return model;
}

/// What all parameters of the model hold; -1 if they differ.
float element_of(const Model& model) {
  std::set<float> elements;
  for (const Value* const value : model.graph().initializers()) {
    if (value->initializer().dtype() != DType::f32) continue;
    const auto values = value->initializer().values<float>();
    elements.insert(values.begin(), values.end());
  }
  return elements.size() == 1 ? *elements.begin() : -1;
}

class Faults : public ::testing::Test {
 protected:
  Faults() {
    set_thread_count(1);  // workers stay, which would be blocks that were not freed
    std::thread([] {}).join();
  }

  path file(const char* name) const { return folder_.path() / name; }

  TempFolder folder_;
};

struct Form {
  const char* name;
  onnx::SaveOptions options;
};

class FaultsOfSave : public Faults, public ::testing::WithParamInterface<Form> {
 protected:
  FaultsOfSave() : old_(model_of(1)), new_(model_of(2)) {
    prepare();  // what is made once is made here
    save(new_);
    work_.prepare = [this] { prepare(); };
    work_.run = [this] { save(new_); };
    work_.check = [this](const std::string& error) { return problem(error); };
  }

  void save(const Model& model) const { onnx::save(model, file("m.onnx"), GetParam().options); }

  void prepare() const {
    for (const std::string& name : names_in(folder_.path())) {
      std::filesystem::remove(file(name.c_str()));
    }
    save(old_);
  }

  /// The older model stays when the save fails, and nothing else; else there is the new one alone.
  std::string problem(const std::string& error) const {
    const float found = element_of(onnx::load(file("m.onnx")));
    const bool is_new = error.empty() || error.find("is written, but") != std::string::npos;
    if (found != (is_new ? 2 : 1)) return text("the model holds ", found, " behind: ", error);
    const std::set<std::string> names = names_in(folder_.path());
    // What the older model needs stays where that one cannot be read, or may come back.
    const std::size_t most = GetParam().options.external_data.empty() ? 1 : is_new ? 3 : 2;
    return names.size() <= most ? "" : "left in the folder:" + listed(names);
  }

  Model old_;
  Model new_;
  Work work_;
};

TEST_P(FaultsOfSave, CallsThatFail) {
  EXPECT_GT(meet_every(Fault::failed_call, work_), 5);
}

TEST_P(FaultsOfSave, CallsThatAreInterrupted) {
  EXPECT_GT(meet_every(Fault::interrupted_call, work_), 2);
}

TEST_P(FaultsOfSave, CallsThatWriteLess) {
  EXPECT_GT(meet_every(Fault::short_call, work_), 0);
}

TEST_P(FaultsOfSave, MemoryThatIsNotThere) {
  EXPECT_GT(meet_every(Fault::no_memory, work_), 20);
}

/// Each system call is the last one. The model is the older or the new one, never a mixture.
TEST_P(FaultsOfSave, ProcessesThatEnd) {
  work_.after_kill = [this]() -> std::string {
    const float found = element_of(onnx::load(file("m.onnx")));
    return found == 1 || found == 2 ? "" : "the model is a mixture";
  };
  EXPECT_GT(meet_every(Fault::killed, work_), 5);
}

INSTANTIATE_TEST_SUITE_P(Forms, FaultsOfSave,
                         ::testing::Values(Form{"one_file", {}},
                                           Form{"two_files",
                                                {.external_data = "m.data",
                                                 .external_threshold_bytes = 16}}),
                         [](const auto& form) { return form.param.name; });

/// The failures that tests would report.
std::string failures_of(Fault fault, const std::function<void()>& run) {
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    meet_every(fault, {.run = run, .check = [](const std::string&) { return std::string(); }});
  }
  std::string all;
  for (int i = 0; i < failures.size(); ++i) all += failures.GetTestPartResult(i).message();
  return all;
}

/// Two blocks, one of which is lost when there is no memory for the other.
void lose_a_block() {
  auto* const lost = new std::vector<int>;
  lost->resize(static_cast<std::size_t>(::getpid()) % 2 + 10);
  delete lost;
}

/// What the other tests rest on.
TEST_F(Faults, LeaksOpenFilesAndCrashesAreFound) {
  EXPECT_THAT(failures_of(Fault::no_memory, lose_a_block), HasSubstr("1 blocks were not freed"));
  EXPECT_THAT(failures_of(Fault::no_memory, []() noexcept { lose_a_block(); }),
              HasSubstr("ended with code 134"));
  const std::string name = folder_.write("f", "content").string();
  EXPECT_THAT(failures_of(Fault::failed_call,
                          [&] {
                            const int file = ::openat(AT_FDCWD, name.c_str(), O_RDONLY | O_CLOEXEC);
                            struct stat status {};
                            if (::fstat(file, &status) != 0) fail(ErrorKind::io, "no status");
                            ::close(file);
                          }),
              HasSubstr("a file was not closed"));
}

/// A name of a file's tensor that is cut off would be another name.
TEST_F(Faults, ATextIsWholeOrNotAtAll) {
  const Work work{.run =
                      [] {
                        const std::string made = text("more than needs no memory: ", 1, ", ", 2);
                        if (!made.ends_with("1, 2")) throw std::logic_error("cut off: " + made);
                      },
                  .check = [](const std::string&) { return ""; }};
  EXPECT_GT(meet_every(Fault::no_memory, work), 1);
}

class FaultsOfLoad : public Faults {
 protected:
  FaultsOfLoad() {
    write_files();
    onnx::load(file("m.onnx"));
    model_work_.run = [this] { read_ = element_of(onnx::load(file("m.onnx"))); };
    model_work_.check = [this](const std::string& error) -> std::string {
      return !error.empty() || read_ == 1 ? "" : "another model was read";
    };
    arrays_work_.run = [this] { read_ = npz::load(file("a.npz"))[0].tensor.values<float>()[1599]; };
    arrays_work_.check = [this](const std::string& error) -> std::string {
      return !error.empty() || read_ == 3 ? "" : "other arrays were read";
    };
    arrays_work_.run();
  }

  void write_files() const {
    onnx::save(model_of(1), file("m.onnx"), {.external_data = "m.data"});
    const std::vector<NamedTensor> arrays{{"x", Tensor::full(DType::f32, {40, 40}, 3)},
                                          {"y", Tensor::full(DType::i64, {40}, 1)}};
    npz::save(file("a.npz"), arrays);
  }

  float read_ = 0;
  Work model_work_;
  Work arrays_work_;
};

TEST_F(FaultsOfLoad, CallsThatFail) {
  EXPECT_GT(meet_every(Fault::failed_call, model_work_), 3);
  EXPECT_GT(meet_every(Fault::failed_call, arrays_work_), 3);
}

TEST_F(FaultsOfLoad, CallsThatAreInterruptedOrReadLess) {
  for (const Fault fault : {Fault::interrupted_call, Fault::short_call}) {
    EXPECT_GT(meet_every(fault, model_work_), 1);
    EXPECT_GT(meet_every(fault, arrays_work_), 1);
  }
}

/// An error, or what the file held before or holds then: of a file that was cut, an error.
TEST_F(FaultsOfLoad, FilesThatChangeWhileTheyAreRead) {
  for (Work* const work : {&model_work_, &arrays_work_}) {
    work->prepare = [this] { write_files(); };
    EXPECT_GT(meet_every(Fault::cut_file, *work), 1);
    EXPECT_GT(meet_every(Fault::longer_file, *work), 1);
  }
}

TEST_F(FaultsOfLoad, MemoryThatIsNotThere) {
  EXPECT_GT(meet_every(Fault::no_memory, model_work_), 50);
  EXPECT_GT(meet_every(Fault::no_memory, arrays_work_), 5);
}

class FaultsOfTraining : public Faults {
 protected:
  FaultsOfTraining() {
    const std::vector<NamedTensor> arrays{{"x", Tensor::full(DType::f32, {10, 1, 4, 4}, 0.5)},
                                          {"y", Tensor::full(DType::i64, {10}, 1)}};
    npz::save(file("data.npz"), arrays);
    onnx::save(model_of(1), file("m.onnx"));
    work_.prepare = [this] { onnx::save(model_of(1), file("m.onnx")); };
    work_.run = [this] { train(); };
    work_.check = [this](const std::string& error) { return problem(error); };
    train();
  }

  void train() const {
    Model model = onnx::load(file("m.onnx"));
    DataLoader loader(open_data("npz:" + file("data.npz").string(), Split::train),
                      {.batch = 4, .shuffle = true});
    Trainer trainer(model, {.optimizer = Adam{.lr = 0.01F}});
    trainer.fit(loader, {.epochs = 2});
    onnx::save(model, file("m.onnx"));
  }

  std::string problem(const std::string& error) const {
    const bool is_old = element_of(onnx::load(file("m.onnx"))) == 1;
    const bool may_be_new = error.empty() || error.find("is written, but") != std::string::npos;
    if (is_old == may_be_new) return "the model's file is not what it should be: " + error;
    const std::set<std::string> names = names_in(folder_.path());
    return names.size() == 2 ? "" : "left in the folder:" + listed(names);
  }

  Work work_;
};

TEST_F(FaultsOfTraining, CallsThatFail) {
  EXPECT_GT(meet_every(Fault::failed_call, work_), 10);
}

TEST_F(FaultsOfTraining, CallsThatAreInterruptedOrShort) {
  EXPECT_GT(meet_every(Fault::interrupted_call, work_), 5);
  EXPECT_GT(meet_every(Fault::short_call, work_), 3);
}

TEST_F(FaultsOfTraining, MemoryThatIsNotThere) {
  EXPECT_GT(meet_every(Fault::no_memory, work_), 50);
}

TEST_F(FaultsOfTraining, ProcessesThatEnd) {
  work_.after_kill = [this]() -> std::string {
    onnx::load(file("m.onnx"));
    for (const std::string& name : names_in(folder_.path())) {
      if (name.ends_with(".tmp")) std::filesystem::remove(file(name.c_str()));
    }
    return "";
  };
  EXPECT_GT(meet_every(Fault::killed, work_), 10);
}

}  // namespace
}  // namespace graft::testing
