#include <algorithm>

#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

const std::vector<Since> kSinceSqueeze{
    {1}, {11, "negative axes"}, {13, "axes as input"}, {21}, {23}, {24}, {25}};

/// Works out the dim that -1 stands for. Axes copied by 0 drop out on both sides, so that a copied
/// unknown dim does no harm; named dims cancel by name.
class Remainder {
 public:
  explicit Remainder(const SymShape& shape) : dims_(shape.dims()) {}

  void copied(int axis) { dims_[static_cast<std::size_t>(axis)] = 1; }
  void given(std::int64_t dim) { given_ = checked_multiply(given_, dim); }

  /// Elements left for -1. `context` is for errors.
  Dim solve(const InferContext& context) const {
    std::int64_t known = 1;
    int open_count = 0;
    Dim open;
    for (const Dim& dim : dims_) {
      if (dim.is_known()) {
        known = checked_multiply(known, dim.value());
      } else {
        ++open_count;
        open = dim;
      }
    }
    if (given_ == 0) {
      context.fail(ErrorKind::shape, "-1 beside a dim of 0 stands for no certain number");
    }
    if (open_count == 0) {
      if (known % given_ != 0) {
        context.fail(ErrorKind::shape, "cannot split ", known, " elements of ",
                     context.input(0).type(), " by ", given_);
      }
      return known / given_;
    }
    return open_count == 1 && known == given_ ? open : Dim();
  }

 private:
  std::vector<Dim> dims_;
  std::int64_t given_ = 1;
};

void require_same_size(const InferContext& context, const SymShape& from, const SymShape& to) {
  const std::optional<Shape> a = from.known();
  const std::optional<Shape> b = to.known();
  if (a && b && a->size() != b->size()) {
    context.fail(ErrorKind::shape, "cannot reshape ", *a, " (", a->size(), " elements) to ", *b,
                 " (", b->size(), " elements)");
  }
}

/// Dims by the ONNX rules: 0 copies the input's dim unless `allows_zero`, one -1 is worked out.
SymShape reshaped(const InferContext& context, const std::vector<std::int64_t>& wanted,
                  bool allows_zero) {
  const SymShape* const from = context.shape(0);
  SymShape result = unknown_dims(static_cast<std::int64_t>(wanted.size()));
  Remainder remainder(from == nullptr ? SymShape() : *from);
  int inferred = -1;
  for (int axis = 0; axis < result.rank(); ++axis) {
    const std::int64_t dim = wanted[static_cast<std::size_t>(axis)];
    if (dim < -1) context.fail(ErrorKind::shape, "shape holds ", dim, ", wanted -1 at least");
    if (dim == -1) {
      if (inferred >= 0) context.fail(ErrorKind::shape, "shape holds more than one -1");
      inferred = axis;
    } else if (dim == 0 && !allows_zero) {
      if (from == nullptr) continue;
      if (axis >= from->rank()) {
        context.fail(ErrorKind::shape, "shape holds 0 for axis ", axis, " that ",
                     context.input(0).type(), " does not have");
      }
      result[axis] = (*from)[axis];
      remainder.copied(axis);
    } else {
      result[axis] = dim;
      remainder.given(dim);
    }
  }
  if (inferred >= 0 && from != nullptr) result[inferred] = remainder.solve(context);
  if (from != nullptr) require_same_size(context, *from, result);
  return result;
}

void infer_reshape(InferContext& context) {
  const bool allows_zero = context.attributes().get_int("allowzero", 0) != 0;
  const DType dtype = context.dtype(0);
  const auto wanted = known_ints(context, 1, "shape");
  if (wanted) {
    if (allows_zero && std::ranges::find(*wanted, -1) != wanted->end() &&
        std::ranges::find(*wanted, 0) != wanted->end()) {
      context.fail(ErrorKind::shape, "with allowzero, shape cannot hold both 0 and -1");
    }
    return context.set_output(0, dtype, reshaped(context, *wanted, allows_zero));
  }
  const auto rank = list_length(context, 1);
  if (!rank) return context.set_output(0, dtype);
  context.set_output(0, dtype, unknown_dims(*rank));
}

void infer_flatten(InferContext& context) {
  const std::int64_t axis = context.attributes().get_int("axis", 1);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, context.dtype(0), unknown_dims(2));
  const int rank = shape->rank();
  if (axis < -rank || axis > rank) {
    context.fail(ErrorKind::shape, "axis ", axis, " out of range for ", context.input(0).type());
  }
  const int at = static_cast<int>(axis < 0 ? axis + rank : axis);
  context.set_output(0, context.dtype(0),
                     SymShape{product(*shape, 0, at), product(*shape, at, rank)});
}

/// Without axes: every dim of 1 goes; nullopt when it is not known which those are.
std::optional<SymShape> squeeze_ones(const SymShape& shape) {
  std::vector<Dim> dims;
  for (const Dim& dim : shape) {
    if (!dim.is_known()) return std::nullopt;
    if (dim.value() != 1) dims.push_back(dim);
  }
  return SymShape(std::move(dims));
}

void infer_squeeze(InferContext& context) {
  const DType dtype = context.dtype(0);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, dtype);
  if (!has_ints(context, 1, "axes")) return context.set_output(0, dtype, squeeze_ones(*shape));
  const auto axes = known_ints(context, 1, "axes");
  if (!axes) return context.set_output(0, dtype);
  std::vector<bool> drops(static_cast<std::size_t>(shape->rank()), false);
  // Unlike Unsqueeze, ONNX does not forbid to name an axis twice here.
  for (const std::int64_t given : *axes) {
    const int axis = normalize_axis(given, shape->rank(), context.node().label());
    const Dim& dim = (*shape)[axis];
    if (dim.is_known() && dim.value() != 1) {
      context.fail(ErrorKind::shape, "axis ", given, " of ", context.input(0).type(),
                   " cannot be squeezed: it is not 1");
    }
    drops[static_cast<std::size_t>(axis)] = true;
  }
  std::vector<Dim> dims;
  for (int axis = 0; axis < shape->rank(); ++axis) {
    if (!drops[static_cast<std::size_t>(axis)]) dims.push_back((*shape)[axis]);
  }
  context.set_output(0, dtype, SymShape(std::move(dims)));
}

void infer_unsqueeze(InferContext& context) {
  const DType dtype = context.dtype(0);
  if (!has_ints(context, 1, "axes")) context.fail(ErrorKind::model, "axes are missing");
  const SymShape* const shape = context.shape(0);
  const auto axes = known_ints(context, 1, "axes");
  if (shape == nullptr) return context.set_output(0, dtype);
  if (!axes) {
    const auto count = list_length(context, 1);
    if (!count) return context.set_output(0, dtype);
    return context.set_output(0, dtype, unknown_dims(checked_add(shape->rank(), *count)));
  }
  const int rank = shape->rank() + static_cast<int>(axes->size());
  std::vector<Dim> dims(static_cast<std::size_t>(rank));
  std::vector<bool> is_new(static_cast<std::size_t>(rank), false);
  for (const int axis : unique_axes(*axes, rank, context.node().label())) {
    is_new[static_cast<std::size_t>(axis)] = true;
  }
  int next = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    dims[at] = is_new[at] ? Dim(1) : (*shape)[next++];
  }
  context.set_output(0, dtype, SymShape(std::move(dims)));
}

void upgrade_squeeze_axes(Node& node, std::int64_t from, Builder& builder) {
  if (from < 13) ints_attribute_to_input(node, builder, "axes", 1);
}

std::vector<Expr> reshape_back(const Gradient& g) {
  return {reshape(g.dy(), g.x().shape())};
}

std::vector<Sample> reshape_samples() {
  const SampleInput x{{2, 3, 4}};
  return {
      {"plain", {x, ints({4, 6})}},
      {"inferred", {x, ints({2, -1})}},
      {"copied", {x, ints({0, 0, 2, 2})}},
      {"copied_and_inferred", {x, ints({0, -1})}},
      {"to_scalar", {{{1}}, {.shape = {0}, .dtype = DType::i64, .is_constant = true}}},
      {"from_scalar", {{{}}, ints({1, 1})}},
      {"allow_zero", {{{0, 3}}, ints({3, 0})}, {{"allowzero", 1}}},
      {"empty_copied", {{{0, 3}}, ints({0, 3, 1})}},
      {"empty_inferred", {{{0, 3}}, ints({0, -1})}},
      {"integers", {{.shape = {2, 3}, .low = -9, .high = 9, .dtype = DType::i32}, ints({6})}},
  };
}

std::vector<Sample> flatten_samples() {
  const SampleInput x{{2, 3, 4}};
  return {
      {"plain", {x}},
      {"axis_0", {x}, {{"axis", 0}}},
      {"axis_2", {x}, {{"axis", 2}}},
      {"axis_rank", {x}, {{"axis", 3}}},
      {"axis_negative", {x}, {{"axis", -1}}},
      {"scalar", {{{}}}, {{"axis", 0}}},
      {"empty", {{{0, 3}}}},
      {"one_row", {{{1, 3, 1}}}},
  };
}

std::vector<Sample> squeeze_samples() {
  return {
      {"axes", {{{1, 3, 1}}, ints({0})}}, {"axes_negative", {{{1, 3, 1}}, ints({-1, 0})}},
      {"all_ones", {{{1, 3, 1}}}},        {"to_scalar", {{{1, 1}}}},
      {"empty", {{{1, 0}}, ints({0})}},
  };
}

std::vector<Sample> unsqueeze_samples() {
  return {
      {"front", {{{2, 3}}, ints({0})}},     {"several", {{{2, 3}}, ints({3, 1})}},
      {"negative", {{{2, 3}}, ints({-1})}}, {"scalar", {{{}}, ints({0})}},
      {"empty", {{{0, 2}}, ints({1})}},     {"one_row", {{{1, 3}}, ints({1})}},
  };
}

std::vector<Sample> identity_samples() {
  return {
      {"plain", {{{2, 3}}}}, {"scalar", {{{}}}}, {"empty", {{{0, 2}}}}, {"one_row", {{{1, 3}}}}};
}

OpDef view_op(OpDef def) {
  def.aliases = {{0, 0, AliasKind::view}};
  def.mixed_precision = kFollows;
  def.only_moves = true;
  def.backward = reshape_back;
  return def;
}

}  // namespace

/// Reshape, Flatten, Squeeze, Unsqueeze, Identity: other shapes of the same bytes.
void register_reshape(OpRegistry& registry) {
  registry.add(view_op(
      {.name = "Reshape",
       .since = {{5, "shape as input"}, {13}, {14, "allowzero"}, {19}, {21}, {23}, {24}, {25}},
       .inputs = {{"data"}, {"shape"}},
       .outputs = {{"reshaped"}},
       .attributes = {{"allowzero", AttributeType::integer}},
       .infer = infer_reshape,
       .backward = reshape_back,
       .samples = reshape_samples}));
  registry.add(view_op({.name = "Flatten",
                        .since = {{1}, {9}, {11, "negative axis"}, {13}, {21}, {23}, {24}, {25}},
                        .inputs = {{"input"}},
                        .outputs = {{"output"}},
                        .attributes = {{"axis", AttributeType::integer}},
                        .infer = infer_flatten,
                        .backward = reshape_back,
                        .samples = flatten_samples}));
  registry.add(view_op({.name = "Squeeze",
                        .since = kSinceSqueeze,
                        .inputs = {{"data"}, {"axes", Arity::optional}},
                        .outputs = {{"squeezed"}},
                        .infer = infer_squeeze,
                        .upgrade = upgrade_squeeze_axes,
                        .backward = reshape_back,
                        .samples = squeeze_samples}));
  // `axes` is required, but older files have it as an attribute; inference checks.
  registry.add(view_op({.name = "Unsqueeze",
                        .since = kSinceSqueeze,
                        .inputs = {{"data"}, {"axes", Arity::optional}},
                        .outputs = {{"expanded"}},
                        .infer = infer_unsqueeze,
                        .upgrade = upgrade_squeeze_axes,
                        .backward = reshape_back,
                        .samples = unsqueeze_samples}));
  registry.add(view_op({.name = "Identity",
                        .since = {{1}, {13}, {14, "sequences"}, {16}, {19}, {21}, {23}, {24}, {25}},
                        .inputs = {{"input"}},
                        .outputs = {{"output"}},
                        .infer = infer_same,
                        .backward = reshape_back,
                        .samples = identity_samples}));
}

}  // namespace graft
