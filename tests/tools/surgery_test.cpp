// graft edit: what it cuts, replaces, inserts and joins.
#include <gmock/gmock.h>

#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class Surgery : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    ASSERT_THAT(run_graft({"new", "lenet", "--out", net()}), Succeeds());
  }
  std::string net() const { return path("net.onnx"); }
  Outcome edit(std::vector<std::string> options) const {
    options.insert(options.begin(), {"edit", net()});
    options.insert(options.end(), {"--out", path("out.onnx")});
    return run_graft(options);
  }
  Model out() const { return onnx::load(path("out.onnx")); }
};

TEST_F(Surgery, ReplacesAHeadAndForgetsTheClasses) {
  Model model = onnx::load(net());
  model.metadata = {{"graft.class_names", "[\"a\"]"}, {"names", "{0: 'a'}"}, {"author", "me"}};
  onnx::save(model, net());
  const Outcome done = edit({"--replace-head", "7", "--init", "normal:std=0.02"});
  ASSERT_THAT(done, Succeeds());
  EXPECT_THAT(done.out, HasSubstr("head: Gemm node 'fc2', 500 features, from 10 to 7 classes; "
                                  "fresh fc2.weight fc2.bias\n"));
  EXPECT_THAT(done.out, HasSubstr("logits f32[N,7]"));
  ASSERT_EQ(out().metadata.size(), 1U);
  EXPECT_EQ(out().metadata[0].first, "author");
}

TEST_F(Surgery, FindsPlaces) {
  EXPECT_THAT(edit({"--truncate", "last:1"}).out, HasSubstr("outputs relu3 f32[N,500]"));
  EXPECT_THAT(edit({"--truncate", "conv.*"}).out, HasSubstr("outputs conv2 f32[N,50,8,8]"));
  EXPECT_THAT(edit({"--truncate", "last:9"}), FailsWith(1, "the model has 4 layers with weights"));
  EXPECT_THAT(edit({"--append", "linear:3:name=extra", "--after", "relu3"}).out,
              HasSubstr("outputs logits f32[N,10] extra f32[N,3]"));
  EXPECT_THAT(edit({"--from", "pool1", "--to", "relu3"}).out, HasSubstr("outputs relu3"));
  EXPECT_EQ(out().graph().inputs()[0]->name(), "pool1");
  EXPECT_EQ(out().graph().find("conv1.weight"), nullptr);
}

TEST_F(Surgery, InsertsLayersAndSaysWhatItCannotRead) {
  ASSERT_THAT(edit({"--insert-after", "relu3=dropout:0.2:name=drop", "--insert-before",
                    "logits=layer_norm:name=norm"}),
              Succeeds());
  const Model model = out();
  EXPECT_EQ(model.graph().find("drop")->producer()->input(0)->name(), "relu3");
  EXPECT_EQ(model.graph().find("norm")->producer()->input(0)->name(), "drop");
  EXPECT_THAT(edit({"--insert-after", "relu3"}), FailsWith(1, "wanted WHERE=LAYERS"));
  EXPECT_THAT(edit({"--append", "relu", "--init", "he"}), FailsWith(1, "kaiming_normal"));
  EXPECT_THAT(edit({"--after", "relu3"}), FailsWith(1, "--append must say which"));
  EXPECT_THAT(edit({"--from", "relu3"}), FailsWith(1, "--to must say where it ends"));
  EXPECT_THAT(edit({"--connect", "a=b"}), FailsWith(1, "go with --merge"));
}

TEST_F(Surgery, MergesRenamesAndPrefixes) {
  ASSERT_THAT(run_graft({"new", "mlp", "--input", "10", "--classes", "3", "--out", path("b.onnx")}),
              Succeeds());
  EXPECT_THAT(edit({"--merge", path("b.onnx")}), FailsWith(2, "give the second one a prefix"));
  ASSERT_THAT(edit({"--merge", path("b.onnx"), "--merge-prefix", "b/", "--rename",
                    "b/logits=scores", "--prefix", "all/"}),
              Succeeds());
  EXPECT_EQ(out().graph().outputs()[0]->name(), "all/scores");
  EXPECT_EQ(out().graph().inputs()[0]->name(), "all/input");
  EXPECT_THAT(edit({"--rename", "logits"}), FailsWith(1, "wanted OLD=NEW"));
}

TEST_F(Surgery, ChangesTheOpset) {
  ASSERT_THAT(edit({"--append", "layer_norm:name=norm,gelu", "--opset", "13"}), Succeeds());
  EXPECT_EQ(out().opset(), 13);
  EXPECT_THAT(edit({"--opset", "12"}), FailsWith(1, "opset 12: wanted one from 13 to"));
}

}  // namespace
}  // namespace graft::testing
