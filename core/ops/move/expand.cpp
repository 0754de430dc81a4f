#include <algorithm>

#include "core/base/at.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

void infer_expand(InferContext& context) {
  const DType dtype = context.dtype(0);
  const SymShape* const shape = context.shape(0);
  const auto wanted = known_ints(context, 1, "");
  if (wanted && shape != nullptr) {
    // Shape's constructor refuses negative dims.
    return context.set_output(0, dtype, broadcast(context, *shape, Shape(*wanted)));
  }
  const auto length = list_length(context, 1);
  if (!length || shape == nullptr) return context.set_output(0, dtype);
  // A dim of 1 takes the wanted one, which is not known; another dim stays.
  SymShape result = unknown_dims(std::max<std::int64_t>(shape->rank(), *length));
  const int rank = result.rank();
  for (int axis = 0; axis < shape->rank(); ++axis) {
    const Dim& dim = (*shape)[axis];
    if (dim.is_known() && dim.value() != 1) result[axis + rank - shape->rank()] = dim;
  }
  context.set_output(0, dtype, std::move(result));
}

/// The engine sums dy, which has the broadcast shape, to the shape of x.
std::vector<Expr> expand_rule(const Gradient& g) {
  return {g.dy()};
}

void infer_tile(InferContext& context) {
  const DType dtype = context.dtype(0);
  const SymShape* const shape = context.shape(0);
  const auto repeats = known_ints(context, 1, "");
  const auto length = list_length(context, 1);
  if (shape == nullptr) {
    if (!length) return context.set_output(0, dtype);
    return context.set_output(0, dtype, unknown_dims(*length));
  }
  if (length && *length != shape->rank()) {
    context.fail(ErrorKind::shape, "repeats has ", *length, " elements, wanted ", shape->rank(),
                 " for ", context.input(0).type());
  }
  if (!repeats) return context.set_output(0, dtype, unknown_dims(shape->rank()));
  SymShape result = *shape;
  for (int axis = 0; axis < result.rank(); ++axis) {
    const std::int64_t repeat = at(*repeats, axis);
    Dim& dim = result[axis];
    if (repeat < 0) context.fail(ErrorKind::shape, "repeats holds ", repeat);
    if (dim.is_known()) {
      dim = checked_multiply(dim.value(), repeat);
    } else if (repeat != 1) {
      dim = repeat == 0 ? Dim(0) : Dim();
    }
  }
  context.set_output(0, dtype, std::move(result));
}

/// dy as [r0,d0,r1,d1,...], summed over the repeats.
std::vector<Expr> tile_rule(const Gradient& g) {
  const Shape x = g.x().shape();
  const Shape y = g.dy().shape();
  if (x.size() == 0) return {zeros_like(g.x())};
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t repeat = y[axis] / x[axis];
    if (repeat != 1) {
      axes.push_back(static_cast<std::int64_t>(dims.size()));
      dims.push_back(repeat);
    }
    dims.push_back(x[axis]);
  }
  if (axes.empty()) return {g.dy()};
  return {reshape(reduce_sum(reshape(g.dy(), Shape(dims)), axes, false), x)};
}

std::vector<Sample> expand_samples() {
  return {
      {"row", {{{3}}, ints({2, 3})}},
      {"column", {{{3, 1}}, ints({3, 4})}},
      {"both_ways", {{{3, 1}}, ints({2, 1, 6})}},
      {"shorter_shape", {{{2, 3, 1}}, ints({5})}},
      {"ones_keep", {{{3, 4}}, ints({1, 1})}},
      {"scalar", {{{}}, ints({2, 3})}},
      {"to_empty", {{{1, 3}}, ints({0, 3})}},
      {"of_empty", {{{0, 1}}, ints({0, 3})}},
      {"channels", {{{1, 3, 1, 1}}, ints({2, 3, 5, 7})}},
      {"integers", {{.shape = {2, 1}, .low = -9, .high = 9, .dtype = DType::i64}, ints({2, 3})}},
  };
}

std::vector<Sample> tile_samples() {
  return {
      {"both", {{{2, 3}}, ints({2, 3})}},
      {"rows", {{{2, 3}}, ints({3, 1})}},
      {"columns", {{{2, 3}}, ints({1, 2})}},
      {"once", {{{2, 3}}, ints({1, 1})}},
      {"never", {{{2, 3}}, ints({0, 2})}},
      {"empty", {{{0, 3}}, ints({2, 2})}},
      {"rank_3", {{{2, 1, 3}}, ints({2, 4, 1})}},
      {"integers", {{.shape = {2}, .low = -9, .high = 9, .dtype = DType::i32}, ints({3})}},
  };
}

}  // namespace

/// Expand (broadcasting both ways) and Tile.
void register_expand(OpRegistry& registry) {
  registry.add({.name = "Expand",
                .since = {{8}, {13}},
                .inputs = {{"input"}, {"shape"}},
                .outputs = {{"output"}},
                .infer = infer_expand,
                .layout = {LayoutRule::Kind::elementwise, {0}},
                .only_moves = true,
                .backward = expand_rule,
                .samples = expand_samples});
  registry.add({.name = "Tile",
                .since = {{6}, {13}},
                .inputs = {{"input"}, {"repeats"}},
                .outputs = {{"output"}},
                .infer = infer_tile,
                .only_moves = true,
                .backward = tile_rule,
                .samples = tile_samples});
}

}  // namespace graft
