// What training leaves in the file, and who heeds it: eval, run, predict.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/ops/builder.h"
#include "io/npz.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"
#include "tests/train/nets.h"
#include "tools/graft/class_names.h"

namespace graft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Outcome;
using testing::run_graft;
using testing::Succeeds;
using Names = std::vector<std::string>;

/// Data sets of 150 samples, so that the last batch is not full.
class Notes : public testing::ToolTest {
 protected:
  static constexpr int kSamples = 150;

  std::string write_cifar() const {
    std::string records;
    for (int i = 0; i < kSamples; ++i) {
      records += static_cast<char>(i % 10);
      for (int pixel = 0; pixel < 3072; ++pixel) records += static_cast<char>(i * pixel % 251);
    }
    folder_.write("data_batch_1.bin", records);
    folder_.write("test_batch.bin", records);
    return "cifar10:" + folder_.path().string();
  }

  /// Three columns and a class, or a number.
  std::string write_csv(bool has_classes) const {
    std::string lines = "a,b,c,y\n";
    for (int i = 0; i < kSamples; ++i) {
      lines +=
          text(i % 7, ',', i % 11 * 0.1, ',', i % 3 - 1, ',', i % 4, has_classes ? "\n" : ".5\n");
    }
    return "csv:" + folder_.write("data.csv", lines).string();
  }

  /// `has_splits`: the same for training and for measuring, else for both.
  std::string write_npz(const Tensor& input, const Tensor& target, bool has_splits) const {
    std::vector<NamedTensor> arrays;
    for (const char* split : {"_train", "_test"}) {
      const std::string suffix = has_splits ? split : "";
      arrays.push_back({"x" + suffix, input});
      arrays.push_back({"target" + suffix, target});
      if (!has_splits) break;
    }
    npz::save(folder_.path() / "data.npz", arrays);
    return "npz:" + path("data.npz");
  }

  std::string spec(const std::string& kind) const {
    const Tensor images = test::random_tensor({kSamples, 1, 12, 12}, 3);
    if (kind == "mnist") return write_mnist(kSamples);
    if (kind == "fashion-mnist") return "fashion-" + write_mnist(kSamples);
    if (kind == "cifar10") return write_cifar();
    if (kind == "csv_classes") return write_csv(true);
    if (kind == "csv_numbers") return write_csv(false);
    if (kind == "npz_numbers") {
      return write_npz(images, test::random_tensor({kSamples, 10}, 4), false);
    }
    return write_npz(images, test::cyclic_labels(kSamples, 10), kind == "npz_splits");
  }

  std::string write_model(const std::string& input, const std::string& classes) const {
    EXPECT_THAT(run_graft({"new", "mlp", "--input", input, "--classes", classes, "--out",
                           path("fresh.onnx")}),
                Succeeds());
    return path("fresh.onnx");
  }

  Outcome train(const std::string& model, const std::string& data, const Names& more,
                const std::string& epochs = "1") const {
    Names command{"train",      model, "--data",   data,   "--out",    path("out.onnx"),
                  "--validate", data,  "--epochs", epochs, "--no-run", "--json"};
    command.insert(command.end(), more.begin(), more.end());
    return run_graft(command);
  }

  void change(const std::string& name, const std::string& key, const std::string& value) const {
    Model model = onnx::load(path(name));
    std::erase_if(model.metadata, [&](const auto& note) { return note.first == key; });
    model.metadata.emplace_back(key, value);
    onnx::save(model, path(name));
  }
  std::string note(const std::string& key) const {
    for (const auto& [name, value] : onnx::load(path("out.onnx")).metadata) {
      if (name == key) return value;
    }
    return "none";
  }
};

struct Trained {
  const char* name;
  const char* data;
  const char* input;
  const char* outputs;
  Names options = {};
};

void PrintTo(const Trained& trained, std::ostream* out) {
  *out << trained.name;
}

class Agree : public Notes, public ::testing::WithParamInterface<Trained> {};

/// What train says of the last epoch and what eval says without a flag, to the last digit.
TEST_P(Agree, TrainAndEval) {
  const Trained& trained = GetParam();
  const std::string data = spec(trained.data);
  const Outcome training =
      train(write_model(trained.input, trained.outputs), data, trained.options);
  ASSERT_THAT(training, Succeeds());
  const std::string from = training.out.substr(training.out.rfind(R"({"event":"epoch")"));
  const auto last = nlohmann::json::parse(from.substr(0, from.find('\n')));
  const Outcome measured = run_graft({"eval", path("out.onnx"), "--data", data, "--json"});
  ASSERT_THAT(measured, Succeeds());
  const auto now = nlohmann::json::parse(measured.out);
  EXPECT_EQ(now["loss"], last["validation_loss"]);
  EXPECT_EQ(now["samples"], kSamples);
  EXPECT_EQ(now.value("accuracy", nlohmann::json()),
            last.value("validation_accuracy", nlohmann::json()));
  EXPECT_THAT(measured.error, Not(HasSubstr("warning")));
}

INSTANTIATE_TEST_SUITE_P(
    DataAndNormalizations, Agree,
    ::testing::Values(
        Trained{"mnist", "mnist", "1x12x12", "10"},
        Trained{"mnist_none", "mnist", "1x12x12", "10", {"--normalize", "none"}},
        Trained{"mnist_data", "mnist", "1x12x12", "10", {"--normalize", "data"}},
        Trained{"mnist_numbers", "mnist", "1x12x12", "10", {"--normalize", "0.1:0.7"}},
        Trained{"fashion_mnist_data", "fashion-mnist", "1x12x12", "10", {"--normalize", "data"}},
        Trained{"cifar10", "cifar10", "3x32x32", "10"},
        Trained{"cifar10_data", "cifar10", "3x32x32", "10", {"--normalize", "data"}},
        Trained{"cifar10_resized", "cifar10", "3x20x24", "10", {"--resize", "20x24"}},
        Trained{"cifar10_one", "cifar10", "3x32x32", "10", {"--normalize", "0.3:0.9"}},
        Trained{"cifar10_channels",
                "cifar10",
                "3x32x32",
                "10",
                {"--normalize", "0.1,0.2,0.3:0.5,0.6,0.7"}},
        Trained{"csv_classes", "csv_classes", "3", "4"},
        Trained{"csv_columns", "csv_classes", "3", "4", {"--normalize", "3,0.5,0:2,0.1,1"}},
        Trained{"csv_numbers", "csv_numbers", "3", "1"}, Trained{"npz", "npz", "1x12x12", "10"},
        Trained{"npz_normalized", "npz", "1x12x12", "10", {"--normalize", "0.25:1.5"}},
        Trained{"npz_splits", "npz_splits", "1x12x12", "10"},
        Trained{"npz_numbers", "npz_numbers", "1x12x12", "10", {"--normalize", "0.25:1.5"}},
        Trained{"another_loss", "npz_numbers", "1x12x12", "10", {"--loss", "huber:delta=0.3"}},
        Trained{"smoothing", "mnist", "1x12x12", "10", {"--label-smoothing", "0.1"}}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_F(Notes, SayWhatTheFileIsFor) {
  ASSERT_THAT(train(write_model("1x12x12", "10"), spec("fashion-mnist"), {}), Succeeds());
  EXPECT_EQ(note("graft.sample"), "1x12x12");
  EXPECT_EQ(note("graft.loss"), "cross_entropy");
  EXPECT_EQ(note("graft.task"), "classification");
  EXPECT_THAT(note("graft.class_names"), ::testing::StartsWith("[\"T-shirt/top\","));
  EXPECT_THAT(note("names"), ::testing::StartsWith("{0: 'T-shirt/top', 1: 'Trouser', "));
}

TEST_F(Notes, EvalAndPredictNameClassesAsTheFileDoes) {
  const std::string data = spec("mnist");
  ASSERT_THAT(train(write_model("1x12x12", "10"), data, {}, "20"), Succeeds());
  change("out.onnx", "graft.class_names", R"(["zero","one","two","3","4","5","6","7","8","9"])");
  const Outcome table = run_graft({"eval", path("out.onnx"), "--data", data, "-v"});
  EXPECT_THAT(table.out, HasSubstr("  100.00 % of 15  zero\n  100.00 % of 15  one\n"));
  EXPECT_THAT(table.error, HasSubstr("class 0 is 'zero' in the file, '0' in the data"));
  const Outcome seen =
      run_graft({"predict", path("out.onnx"), "--data", data, "--limit", "2", "--top", "2"});
  ASSERT_THAT(seen, Succeeds());
  EXPECT_THAT(seen.out, AllOf(HasSubstr("0  zero "), HasSubstr("\n1  one "), HasSubstr(" %\n")));
  const Outcome line =
      run_graft({"predict", path("out.onnx"), "--data", data, "--limit", "1", "--json"});
  const auto json = nlohmann::json::parse(line.out);
  EXPECT_EQ(json["best"][0]["name"], "zero");
  EXPECT_GT(json["best"][0]["probability"], 0.5);
  EXPECT_EQ(json["label"], 0);
}

TEST_F(Notes, NamesOfAnotherExporterCountToo) {
  write_model("1x12x12", "3");
  change("fresh.onnx", "names", R"({0: 'cat', 1: "cat's", 2: 'dog'})");
  const std::string data =
      write_npz(test::random_tensor({4, 1, 12, 12}, 3), test::cyclic_labels(4, 3), false);
  const Outcome seen = run_graft({"predict", path("fresh.onnx"), "--data", data, "--top", "3"});
  ASSERT_THAT(seen, Succeeds());
  for (const char* name : {"cat ", "cat's ", "dog "}) EXPECT_THAT(seen.out, HasSubstr(name));
}

TEST_F(Notes, RunNamesTheBestClass) {
  const std::string data = spec("mnist");
  ASSERT_THAT(train(write_model("1x12x12", "10"), data, {"--normalize", "data"}, "20"), Succeeds());
  change("out.onnx", "graft.class_names", R"(["a","b","c","d","e","f","g","h","i","j"])");
  onnx::save_tensor(path("x.pb"), Tensor::zeros(DType::f32, {2, 1, 12, 12}), "input");
  const Outcome outcome = run_graft(
      {"run", path("out.onnx"), "--input", "input=" + path("x.pb"), "--out", path("outputs")});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("\n  0  [a-j]\n  1  [a-j]\n"));
  EXPECT_THAT(outcome.error, HasSubstr("inputs are taken as they are; the file was trained on "
                                       "inputs normalized by 0.1307:0.3081"));
}

TEST_F(Notes, WhatContradictsTheFileIsSaid) {
  const std::string data = spec("mnist");
  ASSERT_THAT(train(write_model("1x12x12", "10"), data, {"--label-smoothing", "0.1"}), Succeeds());
  const auto eval = [&](const Names& more) {
    Names command{"eval", path("out.onnx"), "--data", data};
    command.insert(command.end(), more.begin(), more.end());
    return run_graft(command).error;
  };
  EXPECT_THAT(eval({}),
              HasSubstr("the loss is cross_entropy:label_smoothing=0.1, as the file says"));
  EXPECT_THAT(eval({"--loss", "cross_entropy"}),
              HasSubstr("trained with --loss cross_entropy:label_smoothing=0.1, this command says "
                        "cross_entropy"));
  change("out.onnx", "graft.sample", "3x32x32");
  EXPECT_THAT(eval({}), HasSubstr("trained on samples of 3x32x32, these are 1x12x12"));
}

TEST_F(Notes, ImagesAreMadeAsLargeAsInTraining) {
  const std::string data = spec("cifar10");
  ASSERT_THAT(train(write_model("3x20x24", "10"), data, {"--resize", "20x24"}), Succeeds());
  EXPECT_EQ(note("graft.resize"), "20x24");
  const auto eval = [&](const Names& more) {
    Names command{"eval", path("out.onnx"), "--data", data};
    command.insert(command.end(), more.begin(), more.end());
    return run_graft(command);
  };
  EXPECT_THAT(eval({}).error, HasSubstr("images are made 20x24, as the file says"));
  EXPECT_THAT(eval({"--resize", "20x25"}).error,
              HasSubstr("trained with --resize 20x24, this command says 20x25"));
  EXPECT_THAT(eval({"--resize", "none"}).error, HasSubstr("got f32[64,3,32,32]"));
  EXPECT_THAT(run_graft({"predict", path("out.onnx"), "--data", data, "--limit", "1"}), Succeeds());
  change("out.onnx", "graft.resize", "large");
  EXPECT_THAT(eval({}), FailsWith(2, "graft.resize"));
}

TEST_F(Notes, PredictWantsScores) {
  ASSERT_THAT(run_graft({"new", "lenet", "--out", path("lenet.onnx")}), Succeeds());
  ASSERT_THAT(
      run_graft({"edit", path("lenet.onnx"), "--truncate", "pool2", "--out", path("cut.onnx")}),
      Succeeds());
  EXPECT_THAT(run_graft({"predict", path("cut.onnx"), "--data", write_mnist(4, 28)}),
              FailsWith(2, "predict names the best of scores [N,C]"));
  Model none;
  none.set_opset("", 17);
  Builder builder(none.graph());
  const Expr x =
      builder.expr(none.graph().add_input("x", {DType::f32, SymShape{Dim("N"), 1, 28, 28}}));
  const Expr zero = builder.expr(builder.constant(Tensor::from<std::int64_t>({1}, {0})));
  const Expr one = builder.expr(builder.constant(Tensor::from<std::int64_t>({1}, {1})));
  none.graph().add_output(call("Slice", {call("Flatten", {x}), zero, zero, one}).value());
  onnx::save(none, path("none.onnx"));
  EXPECT_THAT(run_graft({"predict", path("none.onnx"), "--data", write_mnist(4, 28)}),
              FailsWith(2, "is f32[4,0]"));
}

TEST_F(Notes, PredictWantsClasses) {
  EXPECT_THAT(run_graft({"predict", write_model("3", "1"), "--data", spec("csv_classes")}),
              FailsWith(2, "of two classes or more, output 'logits' is f32[64,1]; graft run"));
  const Outcome numbers =
      run_graft({"predict", write_model("3", "2"), "--data", spec("csv_numbers")});
  EXPECT_THAT(numbers, FailsWith(2, "are numbers; graft run"));
  EXPECT_EQ(numbers.out, "");
}

TEST_F(Notes, PredictChecksTheBatchFirst) {
  ASSERT_THAT(run_graft({"edit", write_model("3", "4"), "--batch", "64", "--out", path("64.onnx")}),
              Succeeds());
  const Outcome outcome = run_graft({"predict", path("64.onnx"), "--data", spec("csv_classes")});
  EXPECT_THAT(outcome, FailsWith(2, "graft edit --batch any"));
  EXPECT_EQ(outcome.out, "") << "part of an answer";
}

TEST_F(Notes, ScoresThatAreNotFiniteNameNoClass) {
  Model model;
  model.set_opset("", 17);
  Builder builder(model.graph());
  const Expr x = builder.expr(model.graph().add_input("x", {DType::f32, SymShape{Dim("N"), 3}}));
  model.graph().add_output(call("Log", {x}).value());
  model.metadata.emplace_back("names", "{0: 'a', 1: 'b', 2: 'c'}");
  onnx::save(model, path("log.onnx"));
  const Tensor samples = Tensor::from<float>({2, 3}, {1, -1, 1, 1, 2, 1});
  const std::string data = write_npz(samples, test::cyclic_labels(2, 3), false);
  const Outcome seen = run_graft({"predict", path("log.onnx"), "--data", data});
  ASSERT_THAT(seen, Succeeds());
  EXPECT_THAT(seen.out, AllOf(HasSubstr("0  the scores are not finite\n"), HasSubstr("1  b ")));
  const Outcome lines = run_graft({"predict", path("log.onnx"), "--data", data, "--json"});
  EXPECT_THAT(lines.out, HasSubstr(R"("probability":null)"));
  onnx::save_tensor(path("x.pb"), samples, "x");
  const Outcome run = run_graft(
      {"run", path("log.onnx"), "--input", "x=" + path("x.pb"), "--out", path("outputs")});
  EXPECT_THAT(run.out, HasSubstr("\n  0  not finite\n  1  b\n"));
}

TEST(ClassNames, AreThoseOfTheNetsClasses) {
  const Names names{"cat", "dog"};
  EXPECT_EQ(cli::name_of_class(names, 2, 1), "dog");
  EXPECT_EQ(cli::name_of_class(names, 2, 7), "class 7")
      << "data may have more classes than the net";
  EXPECT_EQ(cli::name_of_class(names, 3, 1), "class 1") << "names of another net";
}

TEST(ClassNames, AreReadAsPythonPrintsThem) {
  EXPECT_THAT(cli::names_from_python(R"({0: 'a', 1: "it's", 2: 'back\\slash', 3: ''})"),
              ElementsAre("a", "it's", R"(back\slash)", ""));
  EXPECT_THAT(cli::names_from_python("['a', 'b']"), ElementsAre("a", "b"));
  const Names odd{"it's", R"(a\b)", "\"", ""};
  EXPECT_EQ(cli::names_from_python(cli::names_to_python(odd)), odd);
  for (const char* text : {"", "{", "{0: 'a'", "{1: 'a'}", "{0: a}", "{0: 'a'} x", "{0 'a'}",
                           "['a' 'b']", "{0: 'a\\", "[1]"}) {
    EXPECT_THAT(cli::names_from_python(text), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace graft
