// Options that nothing would heed, or that contradict one another, are refused.
#include <gmock/gmock.h>

#include <filesystem>

#include "io/npy.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class IgnoredOptions : public ToolTest {
 protected:
  Outcome train(std::vector<std::string> more) const {
    more.insert(more.begin(), {"train", model_, "--data", data_, "--epochs", "1", "--batch", "16",
                               "--out", path("out.onnx")});
    return run_graft(more);
  }
  Outcome edit(std::vector<std::string> more) const {
    more.insert(more.begin(), {"edit", model_, "--batch", "4", "--out", path("edited.onnx")});
    return run_graft(more);
  }

  std::string model_ = write_mlp();
  std::string data_ = write_mnist();
};

TEST_F(IgnoredOptions, AMonitorThatIsNotMeasuredIsRefusedBeforeTheStart) {
  const std::vector<std::string> unmeasured{"--monitor", "validation_f1", "--early-stopping", "2"};
  const Outcome wrong = train(unmeasured);
  EXPECT_THAT(wrong, FailsWith(1,
                               "no 'validation_f1' is measured; valid here: loss, accuracy, "
                               "validation_loss, validation_accuracy\n"));
  EXPECT_THAT(wrong.out, Not(HasSubstr("epoch 1/")));
  EXPECT_THAT(train({"--monitor", "f1", "--run", path("run"), "--dry-run"}),
              FailsWith(1, "no 'f1' is measured"));
  EXPECT_THAT(train({"--monitor", "validation_loss", "--validate", "none", "--run", path("run")}),
              FailsWith(1, "valid here: loss, accuracy\n"));
  EXPECT_THAT(train({"--monitor", "loss", "--no-run"}),
              FailsWith(1, "--monitor chooses the best epoch of a run's folder"));
  std::vector<std::string> measured = unmeasured;
  measured.insert(measured.end(), {"--metrics", "f1"});
  EXPECT_THAT(train(measured), Succeeds());
}

TEST_F(IgnoredOptions, EditNamesWhatAnOptionGoesWith) {
  const std::string layers = "--replace-head, --insert-after, --insert-before, --append";
  const std::vector<std::vector<std::string>> helpers{
      {"--output", "y", "--replace-head"},      {"--calibrate", data_, "--unfuse-bn"},
      {"--normalize", "none", "--unfuse-bn"},   {"--rank", "4", "--lora"},
      {"--alpha", "4", "--lora, --apply-lora"}, {"--init", "zeros", layers},
      {"--seed", "3", layers + ", --lora"}};
  for (const std::vector<std::string>& helper : helpers) {
    EXPECT_THAT(edit({helper[0], helper[1]}),
                FailsWith(1, helper[0] + " goes with " + helper[2] + "; none is given"));
  }
  EXPECT_FALSE(std::filesystem::exists(path("edited.onnx")));
  EXPECT_THAT(edit({"--append", "linear:3", "--init", "zeros", "--seed", "3"}), Succeeds());
  EXPECT_THAT(edit({"--lora", "fc1", "--rank", "2", "--alpha", "2", "--seed", "3"}), Succeeds());
}

TEST_F(IgnoredOptions, NumbersThatAreNoneAreRefused) {
  EXPECT_THAT(train({"--checkpoint-minutes", "nan", "--run", path("run")}),
              FailsWith(1, "--checkpoint-minutes: 'nan' is no number from 0.001"));
  EXPECT_THAT(run_graft({"bench", model_, "--seconds", "nan"}),
              FailsWith(1, "--seconds: 'nan' is no number from 0 to 86400"));
  for (const char* wrong : {"nan", "-1", "inf"}) {
    EXPECT_THAT(run_graft({"test", path("case"), "--rtol", wrong}), FailsWith(1, "--rtol: '"));
    EXPECT_THAT(run_graft({"test", path("case"), "--atol", wrong}), FailsWith(1, "--atol: '"));
  }
  for (const char* wrong : {"nan:1", "0:nan", "0:inf"}) {
    EXPECT_THAT(train({"--normalize", wrong}), FailsWith(1, "in finite numbers"));
  }
}

TEST_F(IgnoredOptions, ContradictionsAreRefused) {
  const std::string folder = path("run");
  EXPECT_THAT(train({"--no-run", "--run", folder}), FailsWith(1, "excludes"));
  // 'auto' looks in the working folder for runs of a model of this name.
  const std::string untrained = path("never_trained.onnx");
  std::filesystem::copy_file(model_, untrained);
  EXPECT_THAT(run_graft({"train", untrained, "--data", data_, "--no-run", "--resume", "auto"}),
              FailsWith(1, "excludes"));
  ASSERT_THAT(train({"--run", folder}), Succeeds());
  EXPECT_THAT(run_graft({"train", "--resume", folder, "--run", path("other")}),
              FailsWith(1, "is one folder, --run '" + path("other") + "' another"));
  EXPECT_THAT(run_graft({"train", "--resume", folder, "--run", folder + "/", "--epochs", "2"}),
              Succeeds());
  EXPECT_THAT(train({"--tied", "fc1.bias"}), FailsWith(1, "'fc1.bias' is one name"));
  EXPECT_THAT(run_graft({"ops", model_, "--inference", "--loss", "mse"}), FailsWith(1, "excludes"));
  EXPECT_THAT(run_graft({"ops", model_, "--inference", "--lr", "1"}), FailsWith(1, "excludes"));
  npy::save(path("x.npy"), Tensor::zeros(DType::f32, {2, 1, 12, 12}));
  EXPECT_THAT(run_graft({"bench", model_, "--input", "input=" + path("x.npy"), "--batch", "4"}),
              FailsWith(1, "--batch excludes --input"));
  EXPECT_THAT(run_graft({"inspect", model_, "--shape", "input=2x1x12x12", "--batch", "4"}),
              FailsWith(1, "--shape says a batch of 2 for input 'input', --batch 4"));
  EXPECT_THAT(run_graft({"inspect", model_, "--shape", "input=4x1x12x12", "--batch", "4"}),
              Succeeds());
}

TEST_F(IgnoredOptions, EmptyValuesAreRefused) {
  for (const char* option : {"--lr", "--run", "--validate", "--resume", "--trainable", "--tied"}) {
    EXPECT_THAT(train({option, ""}),
                FailsWith(1, std::string(option) + ": the value is empty; give one, or leave"));
  }
  EXPECT_THAT(edit({"--truncate", ""}), FailsWith(1, "--truncate: the value is empty"));
  EXPECT_THAT(run_graft({"inspect", ""}), FailsWith(1, "MODEL: the value is empty"));
  folder_.write("c.json", R"({"validate": "", "lr": null})");
  EXPECT_THAT(train({"--config", path("c.json")}), Succeeds()) << "a file may leave out so";
  EXPECT_THAT(run_graft({"inspect", model_, "--passes", ""}), Succeeds()) << "as --passes alone";
}

}  // namespace
}  // namespace graft::testing
