#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

/// theta: [N,2,3] or [N,3,4]; size: [N,C,H,W] or [N,C,D,H,W].
void infer_affine_grid(InferContext& context) {
  context.require_rank(0, 3, 3);
  require_index_type(context, 1);
  const auto length = list_length(context, 1);
  if (!length) return context.set_output(0, context.dtype(0));
  if (*length != 4 && *length != 5) {
    context.fail(ErrorKind::shape, "size has ", *length, " elements, wanted 4 or 5");
  }
  const std::int64_t axes = *length - 2;
  SymShape grid = unknown_dims(axes + 2);
  grid[static_cast<int>(axes) + 1] = axes;
  if (const SymShape* const theta = context.shape(0)) {
    grid[0] = (*theta)[0];
    const auto differs = [](const Dim& dim, std::int64_t wanted) {
      return dim.is_known() && dim.value() != wanted;
    };
    if (differs((*theta)[1], axes) || differs((*theta)[2], axes + 1)) {
      context.fail(ErrorKind::shape, "theta is ", *theta, ", wanted [N,", axes, ",", axes + 1, "]");
    }
  }
  if (const auto size = context.constant_ints(1)) {
    if (grid[0].is_known() && grid[0].value() != size->front()) {
      context.fail(ErrorKind::shape, "theta has a batch of ", grid[0], ", size of ", size->front());
    }
    for (std::int64_t i = 0; i < axes; ++i) {
      const std::int64_t dim = (*size)[static_cast<std::size_t>(i) + 2];
      if (dim < 1) context.fail(ErrorKind::shape, "size holds ", dim, ", wanted at least 1");
      grid[static_cast<int>(i) + 1] = dim;
    }
  }
  context.set_output(0, context.dtype(0), std::move(grid));
}

/// Positions of `size` elements in [-1, 1]: centres, or, aligned, from corner to corner.
std::vector<double> positions(std::int64_t size, bool align_corners) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<double>(i);
    const auto count = static_cast<double>(size);
    if (!align_corners) {
      result.push_back((2 * at + 1) / count - 1);
    } else {
      result.push_back(size == 1 ? -1.0 : 2 * at / (count - 1) - 1);
    }
  }
  return result;
}

/// grid = theta * (x, y, z, 1), a sum over the columns of theta so that no table of all points is
/// needed: [N,1,...,axes] times [1,..,size,..,1].
std::vector<Expr> expand_affine_grid(const Node& node, Builder& builder) {
  const Expr theta = builder.expr(node.input(0));
  const Shape grid = node.output(0)->known_shape();
  const int axes = grid.rank() - 2;
  const bool align_corners = node.attributes.get_int("align_corners", 0) != 0;
  std::vector<std::int64_t> column_dims(static_cast<std::size_t>(grid.rank()), 1);
  column_dims.front() = grid[0];
  column_dims.back() = axes;
  const auto column = [&](int at) {
    const Expr one = call("Gather", {theta, constant_ints(builder, {at})}, {{"axis", 2}});
    return reshape(one, Shape(column_dims));
  };
  Expr sum = column(axes);
  for (int axis = 0; axis < axes; ++axis) {
    require_small_table(node, grid[axis + 1]);
    std::vector<std::int64_t> dims(static_cast<std::size_t>(grid.rank()), 1);
    dims[static_cast<std::size_t>(axis) + 1] = grid[axis + 1];
    const Tensor places = Tensor::from(Shape(dims), positions(grid[axis + 1], align_corners));
    // Column 0 belongs to x, the last axis.
    sum =
        sum + column(axes - 1 - axis) * builder.expr(builder.constant(places.cast(theta.dtype())));
  }
  return {sum};
}

std::vector<Sample> affine_grid_samples() {
  return {
      {"image", {{{2, 2, 3}}, ints({2, 3, 4, 5})}},
      {"image_aligned", {{{2, 2, 3}}, ints({2, 3, 4, 5})}, {{"align_corners", 1}}},
      {"volume", {{{1, 3, 4}}, ints({1, 2, 3, 4, 2})}},
      {"volume_aligned", {{{1, 3, 4}}, ints({1, 2, 3, 4, 2})}, {{"align_corners", 1}}},
      {"one_pixel", {{{1, 2, 3}}, ints({1, 1, 1, 1})}, {{"align_corners", 1}}},
      {"empty_batch", {{{0, 2, 3}}, ints({0, 1, 2, 2})}},
  };
}

}  // namespace

/// AffineGrid: the grid that GridSample takes.
void register_affine_grid(OpRegistry& registry) {
  registry.add({.name = "AffineGrid",
                .since = {{20}},
                .inputs = {{"theta"}, {"size"}},
                .outputs = {{"grid"}},
                .attributes = {{"align_corners", AttributeType::integer}},
                .infer = infer_affine_grid,
                .backward = Decomposition{expand_affine_grid},
                .samples = affine_grid_samples});
}

}  // namespace graft
