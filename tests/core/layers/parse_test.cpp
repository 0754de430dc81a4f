#include "core/layers/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/core/error_of.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Kind>
Kind only(std::string_view list) {
  return std::get<Kind>(parse_layers(list).at(0));
}

TEST(ParseLayers, ReadsAList) {
  const std::vector<Layer> layers = parse_layers("flatten,linear:10,relu");
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<Flatten>(layers[0]));
  EXPECT_EQ(std::get<Linear>(layers[1]).out, 10);
  EXPECT_TRUE(std::get<Linear>(layers[1]).bias);
  EXPECT_TRUE(std::holds_alternative<Relu>(layers[2]));
}

TEST(ParseLayers, ReadsArguments) {
  const Linear linear = only<Linear>("linear:10:bias=0:name=head:seed=18446744073709551615");
  EXPECT_EQ(linear.name, "head");
  EXPECT_FALSE(linear.bias);
  EXPECT_EQ(linear.seed, 18446744073709551615U);

  const Conv conv = only<Conv>("conv:32x3x5:stride=2:padding=1x2:dilation=2:groups=4:bias=0");
  EXPECT_EQ(conv.out, 32);
  EXPECT_THAT(conv.kernel, ElementsAre(3, 5));
  EXPECT_THAT(conv.stride, ElementsAre(2));
  EXPECT_THAT(conv.padding, ElementsAre(1, 2));
  EXPECT_THAT(conv.dilation, ElementsAre(2));
  EXPECT_EQ(conv.groups, 4);
  EXPECT_FALSE(conv.bias);
  EXPECT_THAT(only<Conv>("conv:32").kernel, ElementsAre(3));

  EXPECT_THAT(only<MaxPool>("MaxPool:3x3:stride=2").stride, ElementsAre(2));
  EXPECT_THAT(only<AveragePool>("average_pool").kernel, ElementsAre(2));
  EXPECT_EQ(only<Dropout>("dropout:0.25").ratio, 0.25F);
  EXPECT_EQ(only<Softmax>("softmax:1").axis, 1);
  EXPECT_EQ(only<LogSoftmax>("log_softmax").axis, -1);
  EXPECT_EQ(only<BatchNorm>("batchnorm:momentum=0.99").momentum, 0.99F);
}

/// What must follow the name.
std::string example_of(const std::string& usage) {
  const std::string name = usage.substr(0, usage.find_first_of(":["));
  if (!usage.starts_with(name + ":")) return "";
  return name == "embedding" ? ":3x2" : ":3";
}

TEST(ParseLayers, ReadsLayersForSequencesAndNorms) {
  const auto up = only<ConvTranspose>("conv_transpose:8x2x2:stride=2:output_padding=1");
  EXPECT_EQ(up.out, 8);
  EXPECT_THAT(up.stride, ElementsAre(2));
  EXPECT_THAT(up.output_padding, ElementsAre(1));
  EXPECT_EQ(only<LayerNorm>("layer_norm:2:bias=0").axes, 2);
  EXPECT_EQ(only<GroupNorm>("GroupNorm:4").groups, 4);
  EXPECT_THAT(only<Reshape>("reshape:3x-1").shape, ElementsAre(3, -1));
  EXPECT_EQ(only<Embedding>("embedding:100x16").size, 16);
  const Lstm lstm = only<Lstm>("lstm:32:depth=2:bidirectional=1:steps=last");
  EXPECT_EQ(lstm.hidden, 32);
  EXPECT_EQ(lstm.depth, 2);
  EXPECT_TRUE(lstm.bidirectional);
  EXPECT_EQ(lstm.steps, Steps::last);
  EXPECT_EQ(only<Gru>("gru:8").steps, Steps::all);
  EXPECT_EQ(only<MultiHeadAttention>("multi_head_attention:8").heads, 8);
}

TEST(ParseLayers, ReadsInitializers) {
  const Init normal = only<Linear>("linear:10:init=normal:std=0.02").init.value();
  EXPECT_EQ(normal.kind, Init::normal);
  EXPECT_EQ(normal.deviation, 0.02);
  EXPECT_TRUE(only<Conv>("conv:3:init=kaiming_normal:fan=out").init->fan_out);
  EXPECT_EQ(parse_init("xavier_uniform:gain=2").gain, 2);
  EXPECT_EQ(parse_init("kaiming_uniform:slope=0.1").slope, 0.1);
  EXPECT_EQ(parse_init("constant:value=-1").value, -1);
  EXPECT_EQ(parse_init("zeros").value, 0);
  EXPECT_FALSE(only<Linear>("linear:10").init);
  for (const char* text : {"", "normal", "constant", "zeros:value=1", "kaiming_normal:fan=both",
                           "xavier_normal:fan=in", "he"}) {
    EXPECT_EQ(kind_of([&] { parse_init(text); }), ErrorKind::argument) << text;
  }
  EXPECT_THAT(
      error_of([] { parse_init("normal"); }).what(),
      HasSubstr("initializer 'normal': normal wants its standard deviation, std=S; write it "
                "as INIT: uniform_fan_in, "));
}

TEST(ParseLayers, KnowsEachKind) {
  std::set<std::size_t> kinds;
  for (const std::string& usage : layer_usages()) {
    const std::string name = usage.substr(0, usage.find_first_of(":["));
    kinds.insert(parse_layers(name + example_of(usage)).at(0).index());
  }
  constexpr std::size_t kResidual = 1;  // holds layers, which a line of text cannot
  EXPECT_EQ(kinds.size(), std::variant_size_v<AnyLayer> - kResidual);
}

TEST(ParseLayers, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(error_of([] { parse_layers("linear:10,flaten"); }).what(),
              HasSubstr("no layer is called 'flaten', perhaps you mean 'flatten'; layers are: "
                        "'linear', 'cosine', "));
  for (const char* list : {"",
                           ",",
                           "relu,",
                           "linear",
                           "linear:",
                           "linear:ten",
                           "linear:10x2",
                           "linear:10:20",
                           "linear:10:bias=2",
                           "linear:10:stride=2",
                           "conv",
                           "conv:3x",
                           "conv:32x3x3:groups",
                           "relu:1",
                           "dropout:0.5:0.5",
                           "embedding:3",
                           "lstm",
                           "lstm:3:steps=first",
                           "reshape",
                           "multi_head_attention",
                           "group_norm",
                           "linear:3:std=1",
                           "linear:99999999999999999999",
                           "linear:1:seed=-1",
                           "batch_norm:momentum=nan",
                           "leaky_relu:inf",
                           "linear:3:init=constant:value=nan",
                           "residual"}) {
    EXPECT_EQ(kind_of([&] { parse_layers(list); }), ErrorKind::argument) << list;
  }
  EXPECT_THAT(error_of([] { parse_layers("linear:ten"); }).what(),
              HasSubstr("layer 'linear:ten': 'ten' is no integer that fits; write it as "
                        "linear:OUT[:bias=0|1][:seed=N]"));
}

TEST(ParseLayers, EveryUsageStartsWithALayer) {
  for (const std::string& usage : layer_usages()) {
    const std::string name = usage.substr(0, usage.find_first_of(":["));
    EXPECT_EQ(parse_layers(name + example_of(usage)).size(), 1U) << usage;
  }
}

}  // namespace
}  // namespace graft
