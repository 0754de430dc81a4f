#include "core/graph/frozen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/edit.h"
#include "tests/core/error_of.h"
#include "tests/core/layers/small_models.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Model two_layers() {
  return model_of({Dim("N"), 2},
                  {Linear{.name = "fc1", .out = 2}, Linear{.name = "fc2", .out = 2}});
}

TEST(Frozen, AreListedInTheMetadata) {
  Model model = two_layers();
  EXPECT_EQ(edit::freeze(model, "fc1.*"), 2U);
  EXPECT_EQ(edit::freeze(model, "fc1.weight"), 0U) << "it was already";
  EXPECT_THAT(model.metadata, ElementsAre(std::pair<std::string, std::string>(
                                  "graft.frozen", "fc1.weight\nfc1.bias")));
  EXPECT_EQ(model.graph().find("fc1.bias")->role, Role::buffer);
  EXPECT_EQ(model.graph().find("fc2.bias")->role, Role::unknown);
  EXPECT_EQ(edit::unfreeze(model, ".*weight"), 1U);
  EXPECT_THAT(edit::frozen_names(model), ElementsAre("fc1.bias"));
  EXPECT_EQ(model.graph().find("fc1.weight")->role, Role::unknown);
  EXPECT_EQ(edit::unfreeze(model, ".*"), 1U);
  EXPECT_THAT(model.metadata, IsEmpty());
}

TEST(Frozen, FollowNamesAndGoWithTheirValues) {
  Model model = two_layers();
  edit::freeze(model, ".*weight");
  edit::rename(model, "fc1.weight", "first");
  EXPECT_THAT(edit::frozen_names(model), ElementsAre("fc2.weight", "first"));
  edit::truncate(model, "fc1");
  EXPECT_THAT(edit::frozen_names(model), ElementsAre("first"));
}

TEST(Frozen, StatisticsAreConstants) {
  Model model = model_of({Dim("N"), 2, 4}, {BatchNorm{.name = "bn"}});
  edit::freeze(model, ".*");
  EXPECT_EQ(model.graph().find("bn.weight")->role, Role::buffer);
  EXPECT_EQ(model.graph().find("bn.running_mean")->role, Role::constant);
}

TEST(Frozen, AreConstantsAndIdentitiesOfFloats) {
  Model model = two_layers();
  Graph& graph = model.graph();
  Node* const first = graph.nodes().front().get();
  const auto add = [&](const char* op, const std::vector<Value*>& inputs, const char* name,
                       Attributes attributes) {
    graph.add_node(op, "", inputs, {name}, std::move(attributes), first);
  };
  add("Constant", {}, "floats", {{"value", Tensor::zeros(DType::f32, {2})}});
  add("Constant", {}, "number", {{"value_float", 1.0F}});
  add("Constant", {}, "indices", {{"value", Tensor::zeros(DType::i64, {2})}});
  add("Identity", {graph.find("fc1.bias")}, "shared", {});
  add("Identity", {graph.find("x")}, "passed", {});
  edit::freeze(model, "floats|number|indices|shared|passed");
  EXPECT_THAT(edit::frozen_names(model), ElementsAre("floats", "number", "shared"));
}

TEST(Frozen, RefusesPatternsThatMatchNothing) {
  Model model = two_layers();
  EXPECT_THAT(error_of([&] { edit::freeze(model, "fc3.*"); }).what(),
              HasSubstr("freeze pattern 'fc3.*' matches none of 4 weights: 'fc1.weight', "));
  EXPECT_THAT(error_of([&] { edit::unfreeze(model, "fc1.*"); }).what(),
              HasSubstr("unfreeze pattern 'fc1.*' matches none of 0 frozen weights"));
  EXPECT_EQ(error_of([&] { edit::freeze(model, "("); }).kind(), ErrorKind::argument);
}

}  // namespace
}  // namespace graft
