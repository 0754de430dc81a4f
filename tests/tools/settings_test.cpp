// Options from the environment and from files.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class Settings : public ToolTest {
 protected:
  /// `variables`: like "GRAFT_LIMIT=20".
  static Outcome graft(const std::vector<std::string>& variables,
                       const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"/usr/bin/env"};
    command.insert(command.end(), variables.begin(), variables.end());
    command.push_back(GRAFT_BINARY);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
  }

  /// How many samples `graft eval` measures with these variables and more arguments.
  int samples(const std::vector<std::string>& variables, std::vector<std::string> more) const {
    more.insert(more.begin(), {"eval", model_, "--data", data_, "--json"});
    const Outcome outcome = graft(variables, more);
    EXPECT_THAT(outcome, Succeeds());
    return nlohmann::json::parse(outcome.out)["samples"].get<int>();
  }

  std::string write_config(const std::string& text) const {
    folder_.write("config.json", text);
    return path("config.json");
  }

  std::string model_ = write_mlp();
  std::string data_ = write_mnist();
};

TEST_F(Settings, WhatStandsNearerToTheUserCounts) {
  const std::string config = write_config(R"({"limit": 11})");
  EXPECT_EQ(samples({}, {}), 64);
  EXPECT_EQ(samples({}, {"--config", config}), 11);
  EXPECT_EQ(samples({"GRAFT_CONFIG=" + config}, {}), 11);
  EXPECT_EQ(samples({"GRAFT_LIMIT=12"}, {"--config", config}), 12);
  EXPECT_EQ(samples({"GRAFT_LIMIT=12", "GRAFT_EVAL_LIMIT=13"}, {"--config", config}), 13);
  EXPECT_EQ(samples({"GRAFT_EVAL_LIMIT=13"}, {"--config", config, "--limit", "14"}), 14);
  EXPECT_EQ(samples({"GRAFT_LIMIT=", "GRAFT_TRAIN_LIMIT=15"}, {}), 64);
}

TEST_F(Settings, AFileCanSayAll) {
  const std::string twins = "linear:10:name=a:init=zeros,linear:10:name=b:init=zeros";
  ASSERT_THAT(graft({}, {"edit", model_, "--append", twins, "--out", path("twins.onnx")}),
              Succeeds());
  const nlohmann::json settings{
      {"model", path("twins.onnx")},
      {"data", data_},
      {"out", path("out.onnx")},
      {"epochs", 1},
      {"weight_decay", 1e-4},
      {"learning-rate", 0.01},
      {"tied", nlohmann::json::array({nlohmann::json::array({"a.weight", "b.weight"})})},
      {"validate", "none"},
      {"clip-norm", nullptr},
      {"json", true},
      {"trainable", "fc[12].*"}};
  for (const nlohmann::json& file :
       {settings, nlohmann::json{{"settings", settings}, {"version", "1"}}}) {
    const Outcome outcome = graft({}, {"train", "--config", write_config(file.dump())});
    EXPECT_THAT(outcome, Succeeds());
    EXPECT_THAT(outcome.out, HasSubstr(R"("event":"epoch","epoch":1)"));
  }
}

TEST_F(Settings, WrongOnesSayWhereTheyAre) {
  const auto eval = [&](const std::vector<std::string>& variables, const std::string& config) {
    return graft(variables, {"eval", model_, "--data", data_, "--config", write_config(config)});
  };
  EXPECT_THAT(eval({"GRAFT_LIMIT=many"}, "{}"), FailsWith(1, "said by GRAFT_LIMIT"));
  EXPECT_THAT(eval({}, R"({"limit": "many"})"), FailsWith(1, "said by " + path("config.json")));
  EXPECT_THAT(eval({}, R"({"limt": 1})"), FailsWith(1, "'limt'; did you mean 'limit'?; valid: "));
  EXPECT_THAT(eval({}, R"({"limit": {}})"), FailsWith(1, "'limit' is object"));
  for (const char* text : {"", "[]", "{", "\xff"}) {
    EXPECT_THAT(eval({}, text), FailsWith(1, "holds no JSON object"));
  }
  EXPECT_THAT(eval({}, "{\n  \"batch\": 2,\n  \"limit\" 3\n}"),
              FailsWith(1,
                        "holds no JSON object: line 3, column 11: syntax error while parsing "
                        "object separator - unexpected number literal; expected ':'; wanted"));
  EXPECT_THAT(eval({}, R"({"limit": "1)"), FailsWith(1, "line 1, column 13: "));
  EXPECT_THAT(graft({}, {"eval", model_, "--config", path("none.json")}),
              FailsWith(2, "none.json"));
  EXPECT_THAT(graft({}, {"eval", model_}), FailsWith(1, "--data is required"));
}

TEST_F(Settings, FlagsAreTrueOrFalse) {
  for (const std::string value : {"1", "true"}) {
    EXPECT_THAT(graft({"GRAFT_JSON=" + value}, {"devices"}).out, HasSubstr("{"));
  }
  for (const std::string value : {"0", "false", ""}) {
    EXPECT_THAT(graft({"GRAFT_JSON=" + value}, {"devices"}).out, StartsWith("cpu "));
  }
  EXPECT_THAT(graft({"GRAFT_JSON=maybe"}, {"devices"}), FailsWith(1, "said by GRAFT_JSON"));
}

/// GRAFT_BATCH is meant for training; an edit that took it too would change the file.
TEST_F(Settings, WhatIsWrittenIsSaidToTheVerb) {
  const std::vector<std::string> edit{"edit", model_, "--append", "relu", "--out", path("e.onnx")};
  EXPECT_THAT(graft({"GRAFT_BATCH=4"}, edit).out, HasSubstr("f32[N,10]"));
  EXPECT_THAT(graft({"GRAFT_EDIT_BATCH=4"}, edit).out, HasSubstr("f32[4,10]"));
}

TEST_F(Settings, SynonymsAreKnown) {
  const Outcome outcome = graft({}, {"train",
                                     model_,
                                     "--dataset",
                                     data_,
                                     "-o",
                                     path("o.onnx"),
                                     "--batch-size",
                                     "16",
                                     "--learning-rate",
                                     "0.01",
                                     "--wd",
                                     "1e-4",
                                     "--optim",
                                     "adamw",
                                     "--epochs",
                                     "1",
                                     "--accumulation-steps",
                                     "2",
                                     "--max-grad-norm",
                                     "1",
                                     "--warmup-steps",
                                     "1"});
  EXPECT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out,
              HasSubstr("adamw, learning rate 0.01, cosine after 1 warm-up, 2 updates"));
}

}  // namespace
}  // namespace graft::testing
