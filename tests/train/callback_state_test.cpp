// What checkpoints keep of callbacks, by their names.
#include <gtest/gtest.h>

#include "tests/data/test_files.h"
#include "tests/train/one_training.h"
#include "train/checkpoint.h"

namespace graft {
namespace {

class Remembers : public Callback {
 public:
  Remembers(std::string name, double start) : number(start), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  std::map<std::string, double> state() const override { return {{"number", number}}; }
  void load_state(const std::map<std::string, double>& state) override {
    number = state.at("number");
  }

  double number;

 private:
  std::string name_;
};

/// One for each number.
std::vector<std::shared_ptr<Remembers>> remembering(const std::vector<double>& numbers) {
  const std::vector<std::string> names{"one", "one", "two/three", "", "one"};
  std::vector<std::shared_ptr<Remembers>> all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    all.push_back(std::make_shared<Remembers>(names[i], numbers.at(i)));
  }
  return all;
}

TEST(CallbackState, IsOfEachCallbackWhateverItsName) {
  const testing::TempFolder folder;
  const auto checkpoint = std::make_shared<Checkpoint>(folder.path());
  const auto before = remembering({1, 2, 3, 4, 5});
  std::vector<std::shared_ptr<Callback>> callbacks(before.begin(), before.end());
  callbacks.push_back(checkpoint);
  test::OneTraining first({});
  first.fit(callbacks, {}, 0);
  const auto kept = load_training_state(checkpoint->last()).callbacks;
  EXPECT_EQ(kept.at("one").at("number"), 1);
  EXPECT_EQ(kept.at("one#2").at("number"), 2);
  EXPECT_FALSE(kept.contains(""));
  const auto after = remembering({0, 0, 0, 0, 0});
  test::OneTraining second({});
  second.fit({after.begin(), after.end()}, checkpoint->last(), 0);
  std::vector<double> found;
  for (const auto& callback : after) found.push_back(callback->number);
  EXPECT_EQ(found, (std::vector<double>{1, 2, 3, 0, 5}));
}

}  // namespace
}  // namespace graft
