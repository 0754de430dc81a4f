#include "core/layers/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/frozen.h"
#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "tests/core/error_of.h"
#include "tests/core/layers/small_models.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model body(std::int64_t opset = 17) {
  return model_of({Dim("N"), 4}, {Linear{.name = "fc", .out = 3}, Relu{.name = "features"}}, opset);
}

Model head(std::int64_t opset = 17) {
  return model_of({Dim("batch"), 3}, {Linear{.name = "out", .out = 2}, Softmax{.name = "probs"}},
                  opset);
}

std::vector<std::string> names(const std::vector<Value*>& values) {
  std::vector<std::string> all;
  for (const Value* value : values) all.push_back(value->name());
  return all;
}

TEST(Merge, PutsAModelBehindAnother) {
  Model model = body();
  const Model next = head();
  const std::vector<float> x{1, 2, 3, 4};
  const std::vector<float> wanted = run(next, {1, 3}, run(model, {1, 4}, x));
  model.metadata = {{"author", "a"}};
  Model noted = next.clone();
  noted.metadata = {{"author", "b"}, {"task", "t"}};
  edit::merge(model, noted);
  verify(model);
  EXPECT_EQ(run(model, {1, 4}, x), wanted);
  EXPECT_EQ(model.graph().outputs()[0]->type(), (ValueType{DType::f32, SymShape{Dim("N"), 2}}));
  EXPECT_EQ(model.graph().find("out")->shape(), (SymShape{Dim("N"), 2}));
  EXPECT_TRUE(model.graph().preserved_of(model.graph().find("features")).in_value_info);
  EXPECT_EQ(model.metadata.size(), 2U);
  EXPECT_EQ(model.metadata[0].second, "a");
  // The tensors are those of the other model.
  EXPECT_EQ(model.graph().find("out.weight")->initializer().data(),
            next.graph().find("out.weight")->initializer().data());
}

TEST(Merge, KeepsWhatIsFrozenInEither) {
  Model model = body();
  edit::freeze(model, "fc.weight");
  Model next = head();
  edit::freeze(next, "out.bias");
  edit::merge(model, next, {.prefix = "top."});
  EXPECT_THAT(edit::frozen_names(model), ElementsAre("fc.weight", "top.out.bias"));
  EXPECT_EQ(model.graph().find("top.out.bias")->role, Role::buffer);
}

TEST(Merge, ConnectsByNameAndKeepsTheRest) {
  Model model = body();
  model.graph().add_output(model.graph().find("fc"));
  Model next = head();
  next.graph().add_output(
      next.graph()
          .add_node("Neg", "", {next.graph().add_input("m", next.graph().inputs()[0]->type())},
                    {"minus"})
          ->output());
  EXPECT_THAT(
      error_of([&] { edit::merge(model, next); }).what(),
      HasSubstr("say which output is read by which input; outputs: 'features', 'fc', inputs: "
                "'x', 'm'"));
  edit::merge(model, next, {.connect = {{"features", "x"}}, .prefix = "head/"});
  EXPECT_THAT(names(model.graph().inputs()), ElementsAre("x", "head/m"));
  EXPECT_THAT(names(model.graph().outputs()), ElementsAre("fc", "head/probs", "head/minus"));
  verify(model);

  Model same = body();
  Model renamed = head();
  renamed.graph().rename(renamed.graph().find("x"), "features");
  edit::merge(same, renamed);
  EXPECT_THAT(names(same.graph().outputs()), ElementsAre("probs"));
}

TEST(Merge, RefusesClashesWithoutAPrefix) {
  Model model = body();
  const Model next = model_of({Dim("N"), 3}, {Linear{.name = "fc", .out = 2}});
  const std::string before = print(model);
  EXPECT_STREQ(error_of([&] { edit::merge(model, next); }).what(),
               "merge: both models have values of these names: 'fc.weight', 'fc.bias', 'fc'; give "
               "the second one a prefix");
  EXPECT_EQ(print(model), before);
  edit::merge(model, next, {.prefix = "b."});
  EXPECT_NE(model.graph().find("b.fc.weight"), nullptr);
}

TEST(Merge, RefusesWhatDoesNotFit) {
  const auto refusal = [](const SymShape& shape, const std::vector<Layer>& layers,
                          const edit::MergeOptions& options = {}) {
    Model model = body();
    const Model next = model_of(shape, layers);
    return std::string(error_of([&] { edit::merge(model, next, options); }).what());
  };
  EXPECT_THAT(refusal({Dim("N"), 5}, {Relu{.name = "r"}}),
              HasSubstr("output 'features' is f32[N,3], which input 'x', f32[N,5], does not take"));
  EXPECT_THAT(refusal({Dim("N"), 3, 1}, {Relu{.name = "r"}}), HasSubstr("does not take"));
  EXPECT_THAT(refusal({Dim("N"), 3}, {Relu{.name = "r"}}, {.connect = {{"fc", "x"}}}),
              HasSubstr("no output of the model is called 'fc'; there are: 'features'"));
  EXPECT_THAT(refusal({Dim("N"), 3}, {Relu{.name = "r"}}, {.connect = {{"features", "y"}}}),
              HasSubstr("no input of the second model is called 'y'; there are: 'x'"));
  EXPECT_THAT(refusal({Dim("N"), 3}, {Relu{.name = "r"}},
                      {.connect = {{"features", "x"}, {"features", "x"}}}),
              HasSubstr("input 'x' is connected twice"));
}

TEST(Merge, BringsTheOlderModelToTheNewerOpset) {
  Model model =
      model_of({Dim("N"), 4}, {Linear{.name = "fc", .out = 3}, Dropout{.name = "features"}}, 11);
  const Model next = head(18);
  const std::vector<float> x{1, 2, 3, 4};
  const std::vector<float> wanted = run(next, {1, 3}, run(model, {1, 4}, x));
  edit::merge(model, next);
  EXPECT_EQ(model.opset(), 18);
  EXPECT_EQ(run(model, {1, 4}, x), wanted);

  Model newer = body(18);
  edit::merge(newer, head(9), {.prefix = "h/"});
  EXPECT_EQ(newer.opset(), 18);
  verify(newer);

  Model other = body();
  other.set_opset("com.example", 1);
  Model differs = head();
  differs.set_opset("com.example", 2);
  EXPECT_THAT(error_of([&] { edit::merge(other, differs); }).what(),
              HasSubstr("import version 1 and version 2 of 'com.example'"));
}

TEST(AddPrefix, RenamesValuesAndNodes) {
  Model model = body();
  // A name that another becomes.
  model.graph().rename(model.graph().find("features"), "p/fc");
  edit::add_prefix(model, "p/");
  EXPECT_THAT(names(model.graph().inputs()), ElementsAre("p/x"));
  EXPECT_THAT(names(model.graph().outputs()), ElementsAre("p/p/fc"));
  EXPECT_EQ(model.graph().nodes().front()->name(), "p/fc");
  EXPECT_EQ(model.graph().nodes().front()->output()->name(), "p/fc");
  verify(model);
  EXPECT_EQ(kind_of([&] { edit::add_prefix(model, ""); }), ErrorKind::argument);
}

TEST(AddPrefix, RenamesValuesOfBodies) {
  Model model;
  Graph& graph = model.graph();
  Value* const condition = graph.add_input("c", {DType::boolean, SymShape{}});
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2}});
  const auto branch = std::make_shared<Graph>("then", &graph);
  branch->add_output(branch->add_node("Relu", "", {x}, {"hidden"})->output());
  graph.add_output(
      graph.add_node("If", "", {condition}, {"y"}, {{"then_branch", branch}})->output());
  edit::add_prefix(model, "p/");
  EXPECT_EQ(branch->outputs()[0]->name(), "p/hidden");
  EXPECT_EQ(branch->nodes().front()->input(0)->name(), "p/x");
  verify(model);
}

}  // namespace
}  // namespace graft
