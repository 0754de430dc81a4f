#include "core/ops/image/resize.h"

#include "core/base/at.h"
#include "core/ops/image/resize_lowering.h"
#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_resize(InferContext& context) {
  const SymShape* const x = context.shape(0);
  if (x == nullptr) return context.set_output(0, context.dtype(0));
  context.set_output(0, context.dtype(0), resized(context, *x));
}

void infer_resize_grad(InferContext& context) {
  const Shape x(context.attributes().get_ints("shape"));
  const auto axes = resize_axes(context, x);
  context.require_rank(0, x.rank(), x.rank());
  if (!axes) return context.set_output(0, context.dtype(0), x);
  std::vector<std::int64_t> wanted = x.dims();
  for (const ResizeAxis& axis : *axes) at(wanted, axis.axis) = axis.output;
  if (const SymShape* const dy = context.shape(0)) {
    for (int i = 0; i < x.rank(); ++i) {
      const std::int64_t dim = at(wanted, i);
      if ((*dy)[i].is_known() && (*dy)[i].value() != dim) {
        context.fail(ErrorKind::shape, "dy is ", *dy, ", wanted ", dim, " in axis ", i);
      }
    }
  }
  context.set_output(0, context.dtype(0), x);
}

void upgrade_resize(Node& node, std::int64_t from, Builder&) {
  if (from >= 11) return;
  Value* const scales = node.input(1);
  node.set_input(1, nullptr);
  node.set_input(2, scales);
  set_old_resize_modes(node);
}

std::vector<Expr> resize_inputs(const Gradient& g, const Expr& first) {
  std::vector<Expr> inputs{first};
  for (int i = 1; i < g.input_count(); ++i) inputs.push_back(g.x(i));
  return inputs;
}

std::vector<Expr> resize_rule(const Gradient& g) {
  return {call_internal("ResizeGrad", resize_inputs(g, g.dy()),
                        with_shape(g.attributes(), g.x().shape()))};
}

std::vector<Expr> resize_grad_rule(const Gradient& g) {
  Attributes attributes = g.attributes();
  attributes.erase("shape");
  attributes.erase("extrapolation_value");
  return {call("Resize", resize_inputs(g, g.dy()), attributes)};
}

struct ResizeCase {
  const char* name;
  std::vector<double> scales;
  Attributes attributes;
};

Attributes modes(const char* mode, const char* transformation) {
  return {{"mode", mode}, {"coordinate_transformation_mode", transformation}};
}

Attributes with(Attributes attributes, Attribute more) {
  attributes.set(std::move(more));
  return attributes;
}

SampleInput constant_numbers(const std::vector<double>& values) {
  return {
      .shape = {static_cast<std::int64_t>(values.size())}, .values = values, .is_constant = true};
}

/// On an x of [2,3,4,5]; those with a gradient.
std::vector<ResizeCase> resize_cases() {
  const std::vector<double> twice{1, 1, 2, 2};
  const std::vector<double> other{1, 1, 0.6, 1.7};
  const Attribute linear{"mode", "linear"};
  const Attribute cubic{"mode", "cubic"};
  std::vector<ResizeCase> result{
      {"nearest_twice", twice, {}},
      {"nearest_other", other, {}},
      {"nearest_all_axes", {2, 1.5, 0.5, 1}, {}},
      {"nearest_thrice", {1, 1, 3, 3}, modes("nearest", "asymmetric")},
      {"linear_twice", twice, {linear}},
      {"linear_other", other, {linear}},
      {"linear_all_axes", {0.5, 2, 1.3, 0.8}, {linear}},
      {"linear_rows", {1, 1, 2.5, 1}, {linear}},
      {"linear_columns", {1, 1, 1, 0.5}, {linear}},
      {"linear_to_one", {1, 1, 0.25, 0.2}, modes("linear", "pytorch_half_pixel")},
      {"linear_antialias", {1, 1, 0.5, 0.35}, {linear, {"antialias", 1}}},
      {"cubic_twice", twice, {cubic}},
      {"cubic_other", other, {cubic, {"cubic_coeff_a", -0.5F}}},
      {"cubic_exclude_outside", other, {cubic, {"exclude_outside", 1}}},
      {"cubic_antialias", {1, 1, 0.5, 0.35}, {cubic, {"antialias", 1}, {"exclude_outside", 1}}},
  };
  for (const char* name :
       {"half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
    result.push_back({name, other, modes("linear", name)});
  }
  for (const char* name : {"round_prefer_ceil", "floor", "ceil"}) {
    result.push_back({name, other, {{"nearest_mode", name}}});
  }
  return result;
}

using Ints = std::vector<std::int64_t>;

std::vector<Sample> resize_samples() {
  const SampleInput x{{2, 3, 4, 5}};
  std::vector<Sample> samples;
  for (const ResizeCase& one : resize_cases()) {
    samples.push_back({one.name, {x, absent(), constant_numbers(one.scales)}, one.attributes});
  }
  const auto sizes = [](std::vector<double> list) {
    return std::vector<SampleInput>{absent(), absent(), ints(std::move(list))};
  };
  const auto add = [&](const char* name, const SampleInput& data,
                       const std::vector<SampleInput>& lists, const Attributes& attributes) {
    std::vector<SampleInput> inputs{data};
    inputs.insert(inputs.end(), lists.begin(), lists.end());
    samples.push_back({name, inputs, attributes});
  };
  const Attributes linear{{"mode", "linear"}};
  const Attributes rows{{"mode", "linear"}, {"axes", Ints{-1, 2}}};
  add("sizes", x, sizes({2, 3, 7, 3}), linear);
  add("sizes_of_axes", x, sizes({7, 3}), rows);
  add("not_larger", x, sizes({7, 3}), with(rows, {"keep_aspect_ratio_policy", "not_larger"}));
  add("not_smaller", x, sizes({7, 3}), with(rows, {"keep_aspect_ratio_policy", "not_smaller"}));
  add("same", x, sizes({2, 3, 4, 5}), linear);
  add("to_empty", x, sizes({2, 3, 0, 5}), linear);
  add("of_empty", {{0, 3, 4, 5}}, sizes({0, 3, 7, 3}), linear);
  add("one_axis", {{9}}, sizes({4}), linear);
  add("volume", {{1, 2, 3, 4, 3}}, sizes({1, 2, 5, 3, 6}), linear);
  add("image", {{2, 16, 33, 34}}, sizes({2, 16, 66, 68}), linear);
  add("reduced_image", {{2, 16, 66, 35}}, sizes({2, 16, 33, 17}), linear);
  add("nearest_image", {{2, 16, 33, 34}}, sizes({2, 16, 66, 68}), {});
  add("integers", {.shape = {3}, .low = -9, .high = 9, .dtype = DType::i64}, sizes({7}), {});
  const Attributes crop =
      with(modes("linear", "tf_crop_and_resize"), {"extrapolation_value", 10.0F});
  const SampleInput roi = constant_numbers({0, 0, 0.2, -0.3, 1, 1, 0.7, 1.2});
  add("crop", x, {roi, absent(), ints({2, 3, 3, 7})}, crop);
  add("crop_nearest", x, {roi, absent(), ints({2, 3, 3, 7})}, with(crop, {"mode", "nearest"}));
  add("crop_flipped", x,
      {constant_numbers({0, 0, 0.9, 0.2, 1, 1, 0.1, 0.2}), absent(), ints({2, 3, 3, 1})}, crop);
  return samples;
}

std::vector<Sample> resize_grad_samples() {
  const auto of_shape = [](const Attributes& attributes) {
    return with_shape(attributes, {2, 3, 4, 5});
  };
  std::vector<Sample> samples;
  for (const ResizeCase& one : resize_cases()) {
    std::vector<std::int64_t> dims{2, 3, 4, 5};
    for (std::size_t i = 0; i < dims.size(); ++i) {
      dims[i] = static_cast<std::int64_t>(static_cast<double>(dims[i]) * one.scales[i]);
    }
    samples.push_back({one.name,
                       {{Shape(dims)}, absent(), constant_numbers(one.scales)},
                       of_shape(one.attributes)});
  }
  samples.push_back({"of_empty",
                     {{{2, 3, 0, 5}}, absent(), absent(), ints({2, 3, 0, 5})},
                     of_shape({{"mode", "linear"}})});
  const std::vector<std::int64_t> last_two{-1, 2};
  samples.push_back(
      {"not_larger",
       {{{1, 2, 3, 6}}, absent(), absent(), ints({7, 3})},
       with_shape(
           {{"mode", "linear"}, {"axes", last_two}, {"keep_aspect_ratio_policy", "not_larger"}},
           {1, 2, 2, 4})});
  samples.push_back(
      {"crop",
       {{{2, 3, 3, 7}},
        constant_numbers({0, 0, 0.2, -0.3, 1, 1, 0.7, 1.2}),
        absent(),
        ints({2, 3, 3, 7})},
       of_shape(with(modes("linear", "tf_crop_and_resize"), {"extrapolation_value", 10.0F}))});
  return samples;
}

}  // namespace

/// Resize and ResizeGrad, its transposed map.
void register_resize(OpRegistry& registry) {
  const std::vector<Param> lists{
      {"roi", Arity::optional}, {"scales", Arity::optional}, {"sizes", Arity::optional}};
  std::vector<AttributeDef> attributes{{"antialias", AttributeType::integer},
                                       {"axes", AttributeType::integers},
                                       {"coordinate_transformation_mode", AttributeType::text},
                                       {"cubic_coeff_a", AttributeType::number},
                                       {"exclude_outside", AttributeType::integer},
                                       {"extrapolation_value", AttributeType::number},
                                       {"keep_aspect_ratio_policy", AttributeType::text},
                                       {"mode", AttributeType::text},
                                       {"nearest_mode", AttributeType::text}};
  std::vector<Param> inputs{{"X"}};
  inputs.insert(inputs.end(), lists.begin(), lists.end());
  registry.add({.name = "Resize",
                .since = {{10},
                          {11, "roi, sizes, coordinate transformations"},
                          {13},
                          {18, "antialias, axes, keep_aspect_ratio_policy"},
                          {19, "half_pixel_symmetric"}},
                .inputs = inputs,
                .outputs = {{"Y"}},
                .attributes = attributes,
                .infer = infer_resize,
                .upgrade = upgrade_resize,
                .backward = resize_rule,
                .samples = resize_samples});
  inputs.front() = {"dy"};
  attributes.push_back({"shape", AttributeType::integers, true});
  registry.add({.name = "ResizeGrad",
                .domain = kInternalDomain,
                .inputs = inputs,
                .outputs = {{"dx"}},
                .attributes = attributes,
                .infer = infer_resize_grad,
                .lower = lower_resize_grad,
                .backward = resize_grad_rule,
                .samples = resize_grad_samples});
}

}  // namespace graft
