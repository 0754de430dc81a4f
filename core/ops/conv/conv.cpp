#include "core/ops/conv/conv_cost.h"
#include "core/ops/conv/conv_lowering.h"
#include "core/ops/kernels/conv_expr.h"
#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_conv(InferContext& context) {
  context.require_same_dtype({0, 1});
  set_conv_output(context, 1, context.dtype(0));
  const SymShape* const w = context.shape(1);
  if (context.shape(0) != nullptr && w != nullptr) check_conv_bias(context, 2, (*w)[0]);
}

Shape shape_attribute(const InferContext& context) {
  return Shape(context.attributes().get_ints("shape"));
}

void infer_conv_input_grad(InferContext& context) {
  context.require_same_dtype({0, 1});
  const Shape x = shape_attribute(context);
  if (context.shape(0) != nullptr && context.shape(1) != nullptr) {
    const auto dy = context.shape(0)->known();
    const auto w = context.shape(1)->known();
    if (dy && w) ConvGeometry(context.node(), x, *w, *dy);
  }
  context.set_output(0, context.dtype(0), SymShape(x));
  if (!context.has_input(2)) return;
  context.require_same_dtype({0, 2});
  const SymShape* const addend = context.shape(2);
  if (addend != nullptr && addend->known() && *addend->known() != x) {
    context.fail(ErrorKind::shape, "the addend is ", *addend, ", wanted ", x);
  }
}

void infer_conv_weight_grad(InferContext& context) {
  context.require_same_dtype({0, 1});
  const Shape w = shape_attribute(context);
  if (w.rank() < 3) context.fail(ErrorKind::shape, "shape is ", w, ", wanted rank 3 or more");
  if (context.shape(0) != nullptr && context.shape(1) != nullptr) {
    const auto x = context.shape(0)->known();
    const auto dy = context.shape(1)->known();
    if (x && dy) ConvGeometry(context.node(), *x, w, *dy);
  }
  context.set_output(0, context.dtype(0), SymShape(w));
  context.set_output(1, context.dtype(0), SymShape{Dim(w[0])});
}

/// The weight's gradient stands first: then x need not live beside its own gradient.
std::vector<Expr> conv_rule(const Gradient& g) {
  const Expr x = g.x(0);
  const Expr w = g.x(1);
  const bool has_bias = g.input_count() > 2 && g.x(2);
  // The kernel of the weight gradient sums dy on the way.
  const bool is_fused = has_bias && g.needs(1) && g.needs(2);
  std::vector<Expr> result = conv_weight_grad(x, g.dy(), g.attributes(), w.shape(), is_fused);
  if (has_bias && !is_fused) result.push_back(sum_but_channels(g.dy()));
  result.insert(result.begin(), conv_input_grad(g.dy(), w, g.attributes(), x.shape()));
  return result;
}

std::vector<Expr> conv_input_grad_rule(const Gradient& g) {
  const Expr dy = g.x(0);
  const Expr w = g.x(1);
  std::vector<Expr> result{conv_forward(g.dy(), w, g.attributes(), dy.shape()),
                           conv_weight_grad(g.dy(), dy, g.attributes(), w.shape(), false)[0]};
  if (g.input_count() > 2) result.push_back(g.dy());
  return result;
}

std::vector<Expr> conv_weight_grad_rule(const Gradient& g) {
  const Expr x = g.x(0);
  const Expr dy = g.x(1);
  Expr for_dy = conv_forward(x, g.dy(0), g.attributes(), dy.shape());
  if (g.output_count() > 1 && g.has_dy(1)) {
    Shape channel(std::vector<std::int64_t>(static_cast<std::size_t>(x.rank()), 1));
    std::vector<std::int64_t> dims = channel.dims();
    dims[1] = dy.shape()[1];
    for_dy = for_dy + reshape(g.dy(1), Shape(dims));
  }
  return {conv_input_grad(dy, g.dy(0), g.attributes(), x.shape()), for_dy};
}

const std::vector<AttributeDef> kConvAttributes{
    {"auto_pad", AttributeType::text}, {"dilations", AttributeType::integers},
    {"group", AttributeType::integer}, {"kernel_shape", AttributeType::integers},
    {"pads", AttributeType::integers}, {"strides", AttributeType::integers}};

std::vector<AttributeDef> attributes_with_shape() {
  std::vector<AttributeDef> attributes = kConvAttributes;
  attributes.push_back({"shape", AttributeType::integers, true});
  return attributes;
}

using Ints = std::vector<std::int64_t>;

/// One convolution: shapes of x, w and y, and attributes. The three ops share them.
struct ConvCase {
  std::string name;
  Shape x;
  Shape w;
  Shape y;
  Attributes attributes{};
  double most = 1.0;  ///< of the numbers: sums of many terms are rounded to more of them

  SampleInput input(const Shape& shape) const { return {shape, -most, most}; }
};

std::vector<ConvCase> conv_cases() {
  const auto same = [](const char* mode) {
    return Attributes{{"auto_pad", mode}, {"strides", Ints{2, 2}}, {"kernel_shape", Ints{3, 2}}};
  };
  return {
      {"plain", {2, 3, 6, 7}, {4, 3, 3, 2}, {2, 4, 4, 6}},
      {"one_channel", {2, 1, 9, 8}, {5, 1, 5, 5}, {2, 5, 5, 4}},
      {"padded", {1, 3, 5, 5}, {2, 3, 3, 3}, {1, 2, 5, 5}, {{"pads", Ints{1, 1, 1, 1}}}},
      {"asymmetric",
       {1, 2, 5, 6},
       {3, 2, 3, 3},
       {1, 3, 3, 4},
       {{"pads", Ints{0, 2, 3, 1}}, {"strides", Ints{2, 2}}}},
      {"strided_with_rest", {2, 2, 8, 9}, {3, 2, 3, 3}, {2, 3, 2, 3}, {{"strides", Ints{3, 3}}}},
      {"dilated",
       {1, 2, 9, 8},
       {2, 2, 3, 2},
       {1, 2, 7, 6},
       {{"dilations", Ints{2, 3}}, {"pads", Ints{1, 1, 1, 0}}}},
      {"grouped", {2, 4, 5, 5}, {6, 2, 3, 3}, {2, 6, 3, 3}, {{"group", 2}}},
      {"pointwise", {2, 5, 3, 4}, {7, 5, 1, 1}, {2, 7, 3, 4}},
      {"pointwise_strided", {2, 3, 5, 5}, {4, 3, 1, 1}, {2, 4, 3, 3}, {{"strides", Ints{2, 2}}}},
      {"one_pixel", {3, 4, 1, 1}, {2, 4, 1, 1}, {3, 2, 1, 1}},
      {"same_upper", {1, 2, 5, 6}, {3, 2, 3, 2}, {1, 3, 3, 3}, same("SAME_UPPER")},
      {"same_lower", {1, 2, 6, 7}, {3, 2, 3, 2}, {1, 3, 3, 4}, same("SAME_LOWER")},
      {"valid", {1, 2, 6, 7}, {3, 2, 3, 2}, {1, 3, 2, 3}, same("VALID")},
      {"one_axis", {2, 3, 11}, {4, 3, 4}, {2, 4, 5}, {{"strides", Ints{2}}, {"pads", Ints{1, 0}}}},
      {"three_axes",
       {1, 2, 4, 5, 6},
       {3, 2, 2, 3, 2},
       {1, 3, 3, 5, 3},
       {{"strides", Ints{1, 1, 2}}, {"pads", Ints{0, 1, 0, 0, 1, 0}}}},
      {"kernel_in_padding", {1, 1, 1, 2}, {2, 1, 3, 3}, {1, 2, 3, 4}, {{"pads", Ints{2, 2, 2, 2}}}},
      {"empty_batch", {0, 3, 5, 5}, {4, 3, 3, 3}, {0, 4, 3, 3}},
      {"no_inputs", {2, 0, 3, 3}, {2, 0, 2, 2}, {2, 2, 2, 2}},
      {"few_to_many",
       {12, 3, 7, 6},
       {32, 3, 3, 3},
       {12, 32, 2, 6},
       {{"strides", Ints{2, 1}}, {"dilations", Ints{2, 1}}, {"pads", Ints{1, 1, 0, 1}}}},
      {"many", {4, 16, 17, 15}, {24, 16, 3, 3}, {4, 24, 17, 15}, {{"pads", Ints{1, 1, 1, 1}}}},
  };
}

/// Channels each with a weight of its own, of vectors and of what is left over from them.
std::vector<ConvCase> depthwise_cases() {
  return {
      {"depthwise",
       {2, 5, 6, 6},
       {5, 1, 3, 3},
       {2, 5, 6, 6},
       {{"group", 5}, {"pads", Ints{1, 1, 1, 1}}}},
      {"depthwise_strided",
       {2, 40, 9, 10},
       {40, 1, 3, 3},
       {2, 40, 5, 5},
       {{"group", 40}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"depthwise_many_taps",
       {1, 21, 4, 13},
       {21, 1, 5, 7},
       {1, 21, 4, 13},
       {{"group", 21}, {"pads", Ints{2, 3, 2, 3}}}},
      {"depthwise_dilated",
       {2, 6, 9, 10},
       {6, 1, 3, 2},
       {2, 6, 8, 4},
       {{"group", 6},
        {"dilations", Ints{2, 3}},
        {"strides", Ints{1, 2}},
        {"pads", Ints{2, 1, 1, 0}}}},
      {"depthwise_three_axes",
       {1, 4, 5, 4, 3},
       {4, 1, 2, 3, 2},
       {1, 4, 2, 4, 2},
       {{"group", 4}, {"strides", Ints{2, 1, 1}}, {"pads", Ints{0, 1, 0, 0, 1, 0}}}},
      {"depthwise_many",
       {2, 96, 17, 11},
       {96, 1, 3, 3},
       {2, 96, 17, 11},
       {{"group", 96}, {"pads", Ints{1, 1, 1, 1}}}},
      {"depthwise_multiplied", {1, 3, 4, 4}, {6, 1, 2, 2}, {1, 6, 3, 3}, {{"group", 3}}},
  };
}

/// Channels that fill vectors, and blocks of them.
std::vector<ConvCase> wide_cases() {
  return {
      {"wide", {3, 70, 4, 3}, {50, 70, 2, 2}, {3, 50, 5, 4}, {{"pads", Ints{1, 1, 1, 1}}}},
      {"wide_strided",
       {2, 48, 6, 7},
       {13, 48, 3, 2},
       {2, 13, 3, 6},
       {{"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 0, 0}}}},
      {"wide_one_axis", {2, 65, 9}, {7, 65, 3}, {2, 7, 7}},
      {"to_wide", {4, 32, 9, 8}, {64, 32, 2, 2}, {4, 64, 10, 9}, {{"pads", Ints{1, 1, 1, 1}}}},
      {"wide_to_narrow",
       {5, 64, 15, 14},
       {32, 64, 2, 2},
       {5, 32, 8, 8},
       {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"to_wide_one_axis", {10, 48, 30}, {80, 48, 3}, {10, 80, 30}, {{"pads", Ints{1, 1}}}},
      {"small", {3, 32, 5, 4}, {32, 32, 3, 3}, {3, 32, 5, 4}, {{"pads", Ints{1, 1, 1, 1}}}, 0.25},
      {"small_to_wide", {3, 32, 4, 5}, {80, 32, 2, 2}, {3, 80, 3, 4}},
      {"small_strided",
       {5, 32, 7, 8},
       {64, 32, 3, 2},
       {5, 64, 3, 4},
       {{"strides", Ints{2, 2}}, {"pads", Ints{0, 0, 0, 1}}},
       0.25},
      {"small_many_taps",
       {2, 32, 4, 3},
       {32, 32, 5, 4},
       {2, 32, 4, 4},
       {{"pads", Ints{2, 2, 2, 2}}},
       0.25},
      {"long_rows",
       {2, 32, 12, 31},
       {48, 32, 3, 3},
       {2, 48, 12, 31},
       {{"pads", Ints{1, 1, 1, 1}}},
       0.25},
      {"long_rows_of_few",
       {2, 5, 17, 31},
       {24, 5, 3, 4},
       {2, 24, 17, 15},
       {{"strides", Ints{1, 2}}, {"pads", Ints{1, 0, 1, 1}}}},
      {"short_rows_of_few", {2, 6, 9, 10}, {32, 6, 3, 5}, {2, 32, 7, 6}},
      {"to_wide_three_axes", {2, 32, 6, 7, 7}, {64, 32, 1, 2, 2}, {2, 64, 6, 6, 6}},
      {"to_wide_pointwise",
       {3, 128, 20, 19},
       {64, 128, 1, 1},
       {3, 64, 10, 10},
       {{"strides", Ints{2, 2}}}},
  };
}

/// Without padding, of several blocks of terms: what taps meet lies in rows.
std::vector<ConvCase> unpadded_cases() {
  return {
      {"unpadded",
       {3, 21, 13, 14},
       {43, 21, 3, 4},
       {3, 43, 9, 11},
       {{"dilations", Ints{2, 1}}},
       0.25},
      {"unpadded_strided",
       {4, 40, 17, 18},
       {36, 40, 2, 3},
       {4, 36, 8, 16},
       {{"strides", Ints{2, 1}}},
       0.25},
      {"unpadded_one_axis", {10, 33, 40}, {34, 33, 3}, {10, 34, 38}, {}, 0.25},
  };
}

/// Those that winograd.h is for: several slices and blocks of channels, images without padding, and
/// with more than taps reach over.
std::vector<ConvCase> three_by_three_cases() {
  return {
      {"three_by_three",
       {2, 144, 11, 13},
       {80, 144, 3, 3},
       {2, 80, 12, 12},
       {{"pads", Ints{1, 0, 2, 1}}},
       0.25},
      {"three_by_three_unpadded", {1, 48, 20, 19}, {32, 48, 3, 3}, {1, 32, 18, 17}, {}, 0.25},
      {"three_by_three_in_padding",
       {3, 32, 9, 10},
       {48, 32, 3, 3},
       {3, 48, 13, 14},
       {{"pads", Ints{3, 3, 3, 3}}},
       0.25},
  };
}

std::vector<ConvCase> all_conv_cases() {
  std::vector<ConvCase> all = conv_cases();
  for (const auto& more :
       {depthwise_cases(), wide_cases(), unpadded_cases(), three_by_three_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<Sample> conv_samples() {
  std::vector<Sample> samples;
  for (const ConvCase& c : all_conv_cases()) {
    samples.push_back({c.name, {c.input(c.x), c.input(c.w)}, c.attributes});
    samples.push_back(
        {c.name + "_bias", {c.input(c.x), c.input(c.w), {.shape = {c.w[0]}}}, c.attributes});
  }
  return samples;
}

std::vector<Sample> conv_input_grad_samples() {
  std::vector<Sample> samples;
  for (const ConvCase& c : all_conv_cases()) {
    const Attributes attributes = with_shape(c.attributes, c.x);
    samples.push_back({c.name, {c.input(c.y), c.input(c.w)}, attributes});
    samples.push_back(
        {c.name + "_addend", {c.input(c.y), c.input(c.w), {.shape = c.x}}, attributes});
  }
  samples.push_back({"fewer_windows",
                     {{.shape = {1, 2, 3, 3}}, {.shape = {2, 1, 2, 2}}},
                     {{"shape", Ints{1, 1, 6, 5}}}});
  samples.push_back({"fewer_windows_of_many",
                     {{{2, 32, 11, 12}, -0.25, 0.25}, {{32, 32, 3, 3}, -0.25, 0.25}},
                     {{"shape", Ints{2, 32, 14, 14}}}});
  return samples;
}

std::vector<Sample> conv_weight_grad_samples() {
  std::vector<Sample> samples;
  for (const ConvCase& c : all_conv_cases()) {
    const Attributes attributes = with_shape(c.attributes, c.w);
    Sample sample{c.name, {c.input(c.x), c.input(c.y)}, attributes};
    // Of 1,020 terms: oneDNN's kernel for AVX2 was 1.7e-5 off, in a sum of 1.9.
    if (c.name == "many") sample.absolute = 4e-5;
    samples.push_back(sample);
    sample.name = c.name + "_bias";
    sample.outputs = 2;
    samples.push_back(sample);
  }
  // Channels that fill tiles of bf16, and some more.
  Sample short_rows{
      "short_rows",
      {{{3, 40, 7, 4}, -0.25, 0.25}, {{3, 56, 4, 4}, -0.25, 0.25}},
      {{"shape", Ints{56, 40, 3, 3}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 1, 1, 1}}}};
  samples.push_back(short_rows);
  short_rows.name = "short_rows_bias";
  short_rows.outputs = 2;
  samples.push_back(short_rows);
  // So many rows that small numbers are summed.
  const std::vector<SampleInput> inputs{{{1, 4, 64, 64}, -0.25, 0.25},
                                        {{1, 12, 64, 64}, -0.25, 0.25}};
  samples.push_back({"widens", inputs, {{"shape", Ints{12, 4, 1, 1}}}});
  // Images that are cut into stretches of rows, the inner ones alike.
  samples.push_back(
      {"stretches",
       {{{2, 49, 40, 66}, -0.25, 0.25}, {{2, 5, 20, 66}, -0.25, 0.25}},
       {{"shape", Ints{5, 49, 3, 3}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 1, 1, 1}}}});
  return samples;
}

}  // namespace

/// Conv of 1 to 3 spatial axes (kernels; inference takes any) and its two derivatives, which are
/// linear in each input, so that all three differentiate into one another.
void register_conv(OpRegistry& registry) {
  registry.add({.name = "Conv",
                .since = {{1}, {11, "strides and dilations default to 1"}, {22, "bfloat16"}},
                .inputs = {{"X"}, {"W"}, {"B", Arity::optional}},
                .outputs = {{"Y"}},
                .attributes = kConvAttributes,
                .infer = infer_conv,
                .layout = {LayoutRule::Kind::each, {0}, {0}},
                .weights = {1, 2},
                .mixed_precision = kProduct,
                .multiply_adds = gathering_multiply_adds,
                .backward = conv_rule,
                .samples = conv_samples});
  // dx of Conv, of the shape given as attribute; plus an addend of that shape.
  registry.add({.name = "ConvInputGrad",
                .domain = kInternalDomain,
                .inputs = {{"dy"}, {"w"}, {"addend", Arity::optional}},
                .outputs = {{"dx"}},
                .attributes = attributes_with_shape(),
                .infer = infer_conv_input_grad,
                .aliases = {{0, 2, AliasKind::in_place}},
                .layout = {LayoutRule::Kind::each, {0, 2}, {0}},
                .multiply_adds = spreading_multiply_adds,
                .lower = lower_conv_input_grad,
                .backward = conv_input_grad_rule,
                .samples = conv_input_grad_samples});
  // dw of Conv, of the shape given as attribute; and the bias gradient: dy summed but for channels.
  registry.add({.name = "ConvWeightGrad",
                .domain = kInternalDomain,
                .inputs = {{"x"}, {"dy"}},
                .outputs = {{"dw"}, {"db", Arity::optional}},
                .attributes = attributes_with_shape(),
                .infer = infer_conv_weight_grad,
                .layout = {LayoutRule::Kind::each, {0, 1}, {}},
                .multiply_adds = weight_grad_multiply_adds,
                .lower = lower_conv_weight_grad,
                .backward = conv_weight_grad_rule,
                .samples = conv_weight_grad_samples});
}

}  // namespace graft
