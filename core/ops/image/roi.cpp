#include "core/ops/builder.h"
#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

/// X: [N,C,H,W]; input 1 holds `columns` numbers a region.
void check_regions(const InferContext& context, std::int64_t columns) {
  context.require_rank(0, 4, 4);
  context.require_rank(1, 2, 2);
  context.require_same_dtype({0, 1});
  const SymShape* const regions = context.shape(1);
  const SymShape* const x = context.shape(0);
  if (regions == nullptr) return;
  const Dim& found = (*regions)[1];
  if (found.is_known() && found.value() != columns) {
    context.fail(ErrorKind::shape, "rois are ", *regions, ", wanted ", columns, " numbers each");
  }
  const bool any = (*regions)[0].is_known() && (*regions)[0].value() > 0;
  for (const int axis : {0, 2, 3}) {
    if (any && x != nullptr && (*x)[axis].is_known() && (*x)[axis].value() == 0) {
      context.fail(ErrorKind::shape, "x is ", *x, ": there is nothing to pool");
    }
  }
}

void set_pooled(InferContext& context, std::int64_t height, std::int64_t width) {
  for (const std::int64_t size : {height, width}) {
    if (size < 1 || size > kMostPerAxis) {
      context.fail(ErrorKind::shape, "the pooled size is ", height, " by ", width, ", wanted 1 to ",
                   kMostPerAxis);
    }
  }
  const Dim regions = context.shape(1) == nullptr ? Dim() : (*context.shape(1))[0];
  const Dim channels = context.shape(0) == nullptr ? Dim() : (*context.shape(0))[1];
  context.set_output(0, context.dtype(0), SymShape{regions, channels, height, width});
}

void infer_roi_align(InferContext& context) {
  check_regions(context, 4);
  require_index_type(context, 2);
  context.require_rank(2, 1, 1);
  if (context.shape(1) != nullptr) require_dim(context, 2, 0, (*context.shape(1))[0]);
  const Attributes& from = context.attributes();
  const std::string mode = from.get_string("mode", "avg");
  if (mode != "avg" && mode != "max") {
    context.fail(ErrorKind::model, "mode '", mode, "' is none of avg, max");
  }
  const std::string shift = from.get_string("coordinate_transformation_mode", "half_pixel");
  if (shift != "half_pixel" && shift != "output_half_pixel") {
    context.fail(ErrorKind::model, "coordinate_transformation_mode '", shift,
                 "' is none of half_pixel, output_half_pixel");
  }
  if (from.get_int("sampling_ratio", 0) < 0) {
    context.fail(ErrorKind::shape, "sampling_ratio is negative");
  }
  set_pooled(context, from.get_int("output_height", 1), from.get_int("output_width", 1));
}

void infer_max_roi_pool(InferContext& context) {
  check_regions(context, 5);
  const Ints size = context.attributes().get_ints("pooled_shape");
  if (size.size() != 2) {
    context.fail(ErrorKind::shape, "pooled_shape has ", size.size(), " numbers, wanted 2");
  }
  set_pooled(context, size[0], size[1]);
}

/// Gradients have the forward op's inputs, then dy.
void infer_roi_align_grad(InferContext& context) {
  check_regions(context, 4);
  require_index_type(context, 2);
  context.copy_type(0);
}
void infer_max_roi_pool_grad(InferContext& context) {
  check_regions(context, 5);
  context.copy_type(0);
}

/// Before 16 positions were not shifted by half a pixel.
void upgrade_roi_align(Node& node, std::int64_t from, Builder&) {
  if (from < 16) node.attributes.set({"coordinate_transformation_mode", "output_half_pixel"});
}

std::vector<Expr> roi_align_rule(const Gradient& g) {
  return {call_internal("RoiAlignGrad", {g.x(0), g.x(1), g.x(2), g.dy()}, g.attributes())};
}
std::vector<Expr> max_roi_pool_rule(const Gradient& g) {
  return {call_internal("MaxRoiPoolGrad", {g.x(0), g.x(1), g.dy()}, g.attributes())};
}

constexpr std::string_view kNoSecond = "second derivatives of pooled regions are not offered";

SampleInput image() {
  return {.shape = {2, 3, 8, 9}, .low = -5.0, .high = 5.0, .distinct = true};
}
SampleInput batch_indices() {
  return {.shape = {3}, .values = {1, 0, 1}, .dtype = DType::i64};
}
/// Constant, since regions have no gradient.
SampleInput regions() {
  return {.shape = {3, 4},
          .values = {0.3, 1.1, 6.2, 7.4, -2.0, -1.5, 3.3, 4.9, 5.2, 3.1, 12.0, 10.5},
          .is_constant = true};
}

std::vector<Sample> roi_align_samples(bool with_dy) {
  const auto of_size = [](std::int64_t height, std::int64_t width, Attributes more) {
    more.set({"output_height", height});
    more.set({"output_width", width});
    return more;
  };
  std::vector<Sample> samples{
      {"adaptive", {image(), regions(), batch_indices()}, of_size(3, 2, {})},
      {"sampled", {image(), regions(), batch_indices()}, of_size(2, 4, {{"sampling_ratio", 2}})},
      {"max",
       {image(), regions(), batch_indices()},
       of_size(2, 2, {{"mode", "max"}, {"sampling_ratio", 2}})},
      {"output_half_pixel",
       {image(), regions(), batch_indices()},
       of_size(2, 3, {{"coordinate_transformation_mode", "output_half_pixel"}})},
      {"scaled", {image(), regions(), batch_indices()}, of_size(1, 1, {{"spatial_scale", 0.5F}})},
      {"no_regions",
       {image(), {.shape = {0, 4}, .is_constant = true}, {.shape = {0}, .dtype = DType::i64}},
       of_size(2, 2, {})},
      {"one_channel",
       {{.shape = {1, 1, 1, 5}, .distinct = true},
        {.shape = {1, 4}, .values = {0.3, 0.1, 3.2, 1.4}, .is_constant = true},
        {.shape = {1}, .values = {0}, .dtype = DType::i64}},
       of_size(1, 2, {{"sampling_ratio", 1}})},
      {"no_channels", {{.shape = {2, 0, 4, 5}}, regions(), batch_indices()}, of_size(2, 2, {})},
  };
  for (Sample& sample : samples) {
    const std::int64_t height = sample.attributes.get_int("output_height", 1);
    const std::int64_t width = sample.attributes.get_int("output_width", 1);
    if (with_dy)
      sample.inputs.push_back(
          {{sample.inputs[1].shape[0], sample.inputs[0].shape[1], height, width}});
  }
  return samples;
}

std::vector<Sample> max_roi_pool_samples(bool with_dy) {
  const SampleInput places{
      .shape = {2, 5}, .values = {1, 0, 1, 6, 7, 0, -3, 4, 12, 6}, .is_constant = true};
  std::vector<Sample> samples{
      {"plain", {image(), places}, {{"pooled_shape", Ints{3, 2}}}},
      {"scaled", {image(), places}, {{"pooled_shape", Ints{2, 2}}, {"spatial_scale", 0.5F}}},
      {"no_regions",
       {image(), {.shape = {0, 5}, .is_constant = true}},
       {{"pooled_shape", Ints{1, 1}}}},
      {"one_channel",
       {{.shape = {1, 1, 1, 9}, .distinct = true},
        {.shape = {1, 5}, .values = {0, 1, 0, 7, 0}, .is_constant = true}},
       {{"pooled_shape", Ints{1, 2}}}},
      {"no_channels", {{.shape = {2, 0, 8, 9}}, places}, {{"pooled_shape", Ints{2, 2}}}},
  };
  for (Sample& sample : samples) {
    const Ints size = sample.attributes.get_ints("pooled_shape");
    if (with_dy)
      sample.inputs.push_back(
          {{sample.inputs[1].shape[0], sample.inputs[0].shape[1], size[0], size[1]}});
  }
  return samples;
}

}  // namespace

/// RoiAlign (He et al. 2017) and MaxRoiPool (Girshick 2015), differentiated by the image, not by
/// the regions, as in torchvision.
void register_roi(OpRegistry& registry) {
  const std::vector<AttributeDef> align{{"coordinate_transformation_mode", AttributeType::text},
                                        {"mode", AttributeType::text},
                                        {"output_height", AttributeType::integer},
                                        {"output_width", AttributeType::integer},
                                        {"sampling_ratio", AttributeType::integer},
                                        {"spatial_scale", AttributeType::number}};
  const std::vector<AttributeDef> pool{{"pooled_shape", AttributeType::integers, true},
                                       {"spatial_scale", AttributeType::number}};
  registry.add({.name = "RoiAlign",
                .since = {{10}, {16, "coordinate_transformation_mode"}, {22, "bfloat16"}},
                .inputs = {{"X"}, {"rois"}, {"batch_indices"}},
                .outputs = {{"Y"}},
                .attributes = align,
                .infer = infer_roi_align,
                .upgrade = upgrade_roi_align,
                .backward = roi_align_rule,
                .samples = [] { return roi_align_samples(false); }});
  registry.add({.name = "RoiAlignGrad",
                .domain = kInternalDomain,
                .inputs = {{"x"}, {"rois"}, {"batch_indices"}, {"dy"}},
                .outputs = {{"dx"}},
                .attributes = align,
                .infer = infer_roi_align_grad,
                .backward = NotDifferentiable{kNoSecond},
                .samples = [] { return roi_align_samples(true); }});
  registry.add({.name = "MaxRoiPool",
                .since = {{1}, {22, "bfloat16"}},
                .inputs = {{"X"}, {"rois"}},
                .outputs = {{"Y"}},
                .attributes = pool,
                .infer = infer_max_roi_pool,
                .backward = max_roi_pool_rule,
                .samples = [] { return max_roi_pool_samples(false); }});
  registry.add({.name = "MaxRoiPoolGrad",
                .domain = kInternalDomain,
                .inputs = {{"x"}, {"rois"}, {"dy"}},
                .outputs = {{"dx"}},
                .attributes = pool,
                .infer = infer_max_roi_pool_grad,
                .backward = NotDifferentiable{kNoSecond},
                .samples = [] { return max_roi_pool_samples(true); }});
}

}  // namespace graft
