#include "core/ops/image/grid_sample.h"

#include "core/ops/registry.h"

namespace graft {

GridSampler::GridSampler(const Node& node) {
  const std::string mode_name = node.attributes.get_string("mode", "linear");
  if (mode_name == "nearest") {
    mode = Mode::nearest;
  } else if (mode_name == "linear") {
    mode = Mode::linear;
  } else if (mode_name == "cubic") {
    mode = Mode::cubic;
  } else {
    fail(ErrorKind::model, node.label(), ": mode '", mode_name,
         "' is none of nearest, linear, cubic");
  }
  const std::string padding_name = node.attributes.get_string("padding_mode", "zeros");
  if (padding_name == "zeros") {
    padding = Padding::zeros;
  } else if (padding_name == "border") {
    padding = Padding::border;
  } else if (padding_name == "reflection") {
    padding = Padding::reflection;
  } else {
    fail(ErrorKind::model, node.label(), ": padding_mode '", padding_name,
         "' is none of zeros, border, reflection");
  }
  align_corners = node.attributes.get_int("align_corners", 0) != 0;
  in_pixels = node.is("PixelSample", kInternalDomain) || node.attributes.has("in_pixels");
}

namespace {

/// X: [N,C,D1,...], grid: [N,O1,...,rank] with as many O as D.
void check_grid_sample_operands(const InferContext& context) {
  static_cast<void>(GridSampler(context.node()));
  context.require_rank(0, 3, 5);
  context.require_rank(1, 3, 5);
  const SymShape* const x = context.shape(0);
  const SymShape* const grid = context.shape(1);
  if (x == nullptr || grid == nullptr) return;
  context.require_rank(1, x->rank(), x->rank());
  const Dim& coordinates = (*grid)[grid->rank() - 1];
  if (coordinates.is_known() && coordinates.value() != x->rank() - 2) {
    context.fail(ErrorKind::shape, "grid is ", *grid, ", wanted ", x->rank() - 2,
                 " in the last axis for an x of ", *x);
  }
  if ((*x)[0].is_known() && (*grid)[0].is_known() && (*x)[0].value() != (*grid)[0].value()) {
    context.fail(ErrorKind::shape, "x has a batch of ", (*x)[0], ", grid of ", (*grid)[0]);
  }
  const auto known = grid->known();
  for (int axis = 2; axis < x->rank(); ++axis) {
    const bool empty = (*x)[axis].is_known() && (*x)[axis].value() == 0;
    if (empty && !(known && known->size() == 0)) {
      context.fail(ErrorKind::shape, "x is ", *x, ": there is nothing to sample");
    }
  }
}

void infer_grid_sample(InferContext& context) {
  check_grid_sample_operands(context);
  const SymShape* const x = context.shape(0);
  const SymShape* const grid = context.shape(1);
  if (x == nullptr || grid == nullptr) return context.set_output(0, context.dtype(0));
  SymShape y = *x;
  for (int axis = 2; axis < y.rank(); ++axis) y[axis] = (*grid)[axis - 1];
  context.set_output(0, context.dtype(0), std::move(y));
}

void infer_grid_sample_grad(InferContext& context) {
  check_grid_sample_operands(context);
  context.require_same_dtype({0, 1, 2});
  context.copy_type(0, 0);
  context.copy_type(1, 1);
}

/// Before 20 the modes were called as in PyTorch.
void upgrade_grid_sample(Node& node, std::int64_t from, Builder&) {
  if (from >= 20) return;
  const std::string mode = node.attributes.get_string("mode", "bilinear");
  if (mode == "bilinear") node.attributes.set({"mode", "linear"});
  if (mode == "bicubic") node.attributes.set({"mode", "cubic"});
}

std::vector<Expr> sampling_gradients(const Gradient& g, Attributes attributes) {
  Expr grid = g.x(1);
  if (grid.dtype() != g.x().dtype()) grid = cast(grid, g.x().dtype());
  std::vector<Expr> result = call_multi("GridSampleGrad", kInternalDomain, {g.x(), grid, g.dy()}, 2,
                                        std::move(attributes));
  if (g.x(1).dtype() != g.x().dtype()) result[1] = cast(result[1], g.x(1).dtype());
  return result;
}

std::vector<Expr> grid_sample_rule(const Gradient& g) {
  return sampling_gradients(g, g.attributes());
}

std::vector<Expr> pixel_sample_rule(const Gradient& g) {
  return sampling_gradients(g, {{"in_pixels", 1}});
}

struct GridSampleCase {
  std::string name;
  Shape x;
  Shape grid;
  Attributes attributes;
};

/// Numbers of the grid reach over the border. Odd sizes keep them off the kinks.
std::vector<GridSampleCase> grid_sample_cases() {
  std::vector<GridSampleCase> result;
  const Shape image{2, 3, 5, 7};
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const int align : {0, 1}) {
        result.push_back({std::string(mode) + "_" + padding + (align == 0 ? "" : "_aligned"),
                          image,
                          {2, 3, 4, 2},
                          {{"mode", mode}, {"padding_mode", padding}, {"align_corners", align}}});
      }
    }
  }
  result.push_back({"volume", {2, 2, 3, 4, 5}, {2, 2, 3, 2, 3}, {}});
  result.push_back({"volume_nearest", {1, 2, 3, 4, 5}, {1, 2, 3, 2, 3}, {{"mode", "nearest"}}});
  result.push_back({"line", {2, 3, 6}, {2, 4, 1}, {}});
  result.push_back({"one_pixel", {1, 2, 1, 1}, {1, 2, 2, 2}, {{"padding_mode", "reflection"}}});
  result.push_back({"empty_batch", {0, 2, 3, 3}, {0, 2, 2, 2}, {}});
  result.push_back({"many", {3, 4, 32, 33}, {3, 30, 31, 2}, {}});
  return result;
}

SampleInput grid_of(const Shape& shape) {
  return {.shape = shape, .low = -1.37, .high = 1.41, .distinct = true};
}

std::vector<Sample> pixel_sample_samples() {
  return {{"inside_and_outside",
           {{{2, 3, 5, 6}}, {.shape = {2, 3, 4, 2}, .low = -1.7, .high = 6.3, .distinct = true}}},
          {"one_pixel",
           {{{1, 2, 1, 1}}, {.shape = {1, 2, 2, 2}, .low = -0.9, .high = 0.8, .distinct = true}}},
          {"empty_batch", {{{0, 2, 3, 3}}, {{0, 2, 2, 2}}}}};
}

std::vector<Sample> grid_sample_samples() {
  std::vector<Sample> samples;
  for (const GridSampleCase& c : grid_sample_cases()) {
    samples.push_back({c.name, {{.shape = c.x}, grid_of(c.grid)}, c.attributes});
  }
  samples.back().no_gradient_check = "of so many points some lie near a kink";
  return samples;
}

std::vector<Sample> grid_sample_grad_samples() {
  std::vector<Sample> samples;
  for (const GridSampleCase& c : grid_sample_cases()) {
    std::vector<std::int64_t> y{c.x[0], c.x[1]};
    for (int axis = 1; axis + 1 < c.grid.rank(); ++axis) y.push_back(c.grid[axis]);
    samples.push_back(
        {c.name, {{.shape = c.x}, grid_of(c.grid), {.shape = Shape(y)}}, c.attributes, 2});
    samples.back().absolute = 1e-4;  // slopes of an image of 30 elements are large
  }
  Sample in_pixels = pixel_sample_samples().front();
  in_pixels.inputs.push_back({.shape = {2, 3, 3, 4}});
  samples.push_back({"in_pixels", in_pixels.inputs, {{"in_pixels", 1}}, 2});
  return samples;
}

}  // namespace

/// GridSample, and GridSampleGrad for the image and the grid. PixelSample takes positions counted
/// in pixels, for what knows them exactly: the numbers of a grid, from -1 to 1, lie too far apart
/// for places within a wide image.
void register_grid_sample(OpRegistry& registry) {
  const std::vector<AttributeDef> attributes{{"align_corners", AttributeType::integer},
                                             {"mode", AttributeType::text},
                                             {"padding_mode", AttributeType::text}};
  std::vector<AttributeDef> of_gradient = attributes;
  of_gradient.push_back({"in_pixels", AttributeType::integer});
  registry.add({.name = "GridSample",
                .since = {{16}, {20, "modes linear and cubic, volumes"}, {22, "bfloat16"}},
                .inputs = {{"X"}, {"grid"}},
                .outputs = {{"Y"}},
                .attributes = attributes,
                .infer = infer_grid_sample,
                .upgrade = upgrade_grid_sample,
                .backward = grid_sample_rule,
                .samples = grid_sample_samples});
  registry.add({.name = "PixelSample",
                .domain = kInternalDomain,
                .inputs = {{"X"}, {"positions"}},
                .outputs = {{"Y"}},
                .infer = infer_grid_sample,
                .backward = pixel_sample_rule,
                .samples = pixel_sample_samples});
  registry.add({.name = "GridSampleGrad",
                .domain = kInternalDomain,
                .inputs = {{"x"}, {"grid"}, {"dy"}},
                .outputs = {{"dx"}, {"dgrid"}},
                .attributes = of_gradient,
                .infer = infer_grid_sample_grad,
                .backward = NotDifferentiable{"second derivatives of GridSample are not offered"},
                .samples = grid_sample_grad_samples});
}

}  // namespace graft
