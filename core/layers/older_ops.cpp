#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/layers/older_forms.h"

// Ops that came later, by their definitions in ONNX's operator pages. Shapes may be open.

namespace graft::edit {
namespace {

using Results = std::vector<Expr>;

Expr reduce_last(const Expr& x, const std::vector<std::int64_t>& axes) {
  return call("ReduceMean", {x, constant_ints(x.builder(), axes)}, {{"keepdims", 1}});
}

/// The norms compute in f32 at least (stash_type).
bool is_short(DType type) {
  return type == DType::f16 || type == DType::bf16;
}

Expr widened(const Expr& x) {
  return is_short(x.dtype()) ? cast(x, DType::f32) : x;
}

Expr narrowed(const Expr& x, DType type) {
  return x.dtype() == type ? x : cast(x, type);
}

/// The axes from `axis` to the last, counted from the back.
std::vector<std::int64_t> axes_from(const OlderForm& form) {
  const Value* const x = form.node.input(0);
  std::int64_t axis = form.node.attributes.get_int("axis", -1);
  if (x->shape()) {
    const int rank = x->shape()->rank();
    axis = normalize_axis(axis, rank, form.node.label()) - rank;
  } else if (axis != -1) {
    form.refuse("this op; it can be written in others once the rank is known");
  }
  std::vector<std::int64_t> axes(static_cast<std::size_t>(-axis));
  std::iota(axes.begin(), axes.end(), axis);
  return axes;
}

/// x - mean, and 1 / sqrt(variance + epsilon).
struct Moments {
  Expr mean;
  Expr centered;
  Expr inverse;
};

Moments moments_of(const Expr& x, const std::vector<std::int64_t>& axes, float epsilon) {
  const Expr mean = reduce_last(x, axes);
  const Expr centered = x - mean;
  const Expr variance = reduce_last(centered * centered, axes);
  return {mean, centered, reciprocal(sqrt(variance + static_cast<double>(epsilon)))};
}

Results layer_norm(const OlderForm& form) {
  const float epsilon = form.node.attributes.get_float("epsilon", 1e-5F);
  const DType type = form.input(0).dtype();
  const Moments moments = moments_of(widened(form.input(0)), axes_from(form), epsilon);
  Expr y = narrowed(moments.centered * moments.inverse, type) * form.input(1);
  if (form.input(2)) y = y + form.input(2);
  return {y, moments.mean, moments.inverse};
}

Results rms_norm(const OlderForm& form) {
  const float epsilon = form.node.attributes.get_float("epsilon", 1e-5F);
  const Expr x = widened(form.input(0));
  const Expr square = reduce_last(x * x, axes_from(form)) + static_cast<double>(epsilon);
  return {narrowed(x / sqrt(square), form.input(0).dtype()) * form.input(1)};
}

/// The shape of a value as an operand of Reshape; the batch is copied.
Expr shape_operand(const OlderForm& form, int input) {
  std::vector<std::int64_t> dims{0};
  const SymShape& shape = *form.node.input(input)->shape();
  for (int axis = 1; axis < shape.rank(); ++axis) {
    if (!shape[axis].is_known() || shape[axis].value() == 0) {
      return call("Shape", {form.input(input)});
    }
    dims.push_back(shape[axis].value());
  }
  return constant_ints(form.builder, dims);
}

Results group_norm(const OlderForm& form) {
  const Value* const given = form.node.input(0);
  if (!given->shape() || given->shape()->rank() < 2) {
    form.refuse("this op; it can be written in others once the rank is known, 2 or more");
  }
  const float epsilon = form.node.attributes.get_float("epsilon", 1e-5F);
  const std::int64_t groups = form.node.attributes.get_int("num_groups", 1);
  const Expr x = widened(form.input(0));
  const Expr rows = call("Reshape", {x, constant_ints(form.builder, {0, groups, -1})});
  const Moments moments = moments_of(rows, {-1}, epsilon);
  const Expr y = call("Reshape", {moments.centered * moments.inverse, shape_operand(form, 0)});
  std::vector<std::int64_t> spatial(static_cast<std::size_t>(given->shape()->rank()) - 2);
  std::iota(spatial.begin(), spatial.end(), 1);
  const auto per_channel = [&](const Expr& v) {
    return spatial.empty() ? v : call("Unsqueeze", {v, constant_ints(form.builder, spatial)});
  };
  return {narrowed(y, form.input(0).dtype()) * per_channel(form.input(1)) +
          per_channel(form.input(2))};
}

Results gelu(const OlderForm& form) {
  const Expr x = form.input(0);
  if (form.node.attributes.get_string("approximate", "none") == "tanh") {
    const double scale = std::sqrt(2 / std::numbers::pi);
    return {x * 0.5 * (tanh((x + x * x * x * 0.044715) * scale) + 1)};
  }
  return {x * (call("Erf", {x / std::numbers::sqrt2}) + 1) * 0.5};
}

Results swish(const OlderForm& form) {
  const Expr x = form.input(0);
  const double alpha = static_cast<double>(form.node.attributes.get_float("alpha", 1));
  return {x * sigmoid(alpha == 1 ? x : x * alpha)};
}

Results hard_swish(const OlderForm& form) {
  const Expr x = form.input(0);
  return {x * call("HardSigmoid", {x}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}})};
}

Results mish(const OlderForm& form) {
  return {form.input(0) * tanh(call("Softplus", {form.input(0)}))};
}

Results cast_like(const OlderForm& form) {
  const DType type = form.node.input(1)->dtype();
  if (type == DType::undefined) form.refuse("casts to a type that is not known");
  return {cast(form.input(0), type)};
}

/// Where with a mask that is known: of a matrix whose sizes are.
Results trilu(const OlderForm& form) {
  const Value* const x = form.node.input(0);
  const Value* const k = form.node.input(1);
  const int rank = x->shape() ? x->shape()->rank() : 0;
  if (rank < 2 || !(*x->shape())[rank - 2].is_known() || !(*x->shape())[rank - 1].is_known() ||
      (k != nullptr && !k->is_initializer())) {
    form.refuse("this op; it can be written in others once its sizes are known");
  }
  const std::int64_t rows = (*x->shape())[rank - 2].value();
  const std::int64_t columns = (*x->shape())[rank - 1].value();
  constexpr std::int64_t kMostElements = std::int64_t{1} << 24;
  if (checked_multiply(rows, columns) > kMostElements) {
    form.refuse(text("this op; as a mask it would have more than ", kMostElements, " elements"));
  }
  const auto offset =
      k == nullptr ? 0 : static_cast<std::int64_t>(to_double(k->initializer()).at(0));
  const bool is_upper = form.node.attributes.get_int("upper", 1) != 0;
  std::vector<std::uint8_t> keep;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const bool is_kept = is_upper ? column - row >= offset : column - row <= offset;
      keep.push_back(is_kept ? 1 : 0);
    }
  }
  const Tensor numbers = Tensor::from(Shape{rows, columns}, keep);
  const Expr mask = form.builder.expr(form.builder.constant(numbers.cast(DType::boolean)));
  return {where(mask, form.input(0), constant_like(form.input(0), 0))};
}

constexpr std::array kOps{
    OlderFormRule{"Swish", 24, swish},        OlderFormRule{"RMSNormalization", 23, rms_norm},
    OlderFormRule{"Gelu", 20, gelu},          OlderFormRule{"GroupNormalization", 18, group_norm},
    OlderFormRule{"Mish", 18, mish},          OlderFormRule{"LayerNormalization", 17, layer_norm},
    OlderFormRule{"CastLike", 15, cast_like}, OlderFormRule{"HardSwish", 14, hard_swish},
    OlderFormRule{"Trilu", 14, trilu},
};

}  // namespace

std::vector<Expr> group_norm_by_channel(const OlderForm& form) {
  return group_norm(form);
}

std::span<const OlderFormRule> op_rules() {
  return kOps;
}

}  // namespace graft::edit
