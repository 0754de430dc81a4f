#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/layers/older_forms.h"

// Ops that came later, by their definitions in ONNX's operator pages. Shapes may be open. A rule
// that does not take a case returns nothing; the row's decomposition may.

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

Expr scalar(const OlderForm& form, std::int64_t number) {
  return form.builder.expr(form.builder.constant(Tensor::scalar(number)));
}

/// 0, 1, ... along an axis of the first input.
Expr indices_along(const OlderForm& form, std::int64_t axis) {
  const Expr size = call("Gather", {call("Shape", {form.input(0)}), scalar(form, axis)});
  return call("Range", {scalar(form, 0), size, scalar(form, 1)});
}

/// An element stays where column - row >= k, in the lower triangle where it is <= k.
Results trilu(const OlderForm& form) {
  const Expr rows = call("Unsqueeze", {indices_along(form, -2), constant_ints(form.builder, {1})});
  const Expr offset = indices_along(form, -1) - rows;
  const bool is_upper = form.node.attributes.get_int("upper", 1) != 0;
  const Expr k = form.input(1) ? form.input(1) : scalar(form, 0);
  const Expr is_kept = call(is_upper ? "GreaterOrEqual" : "LessOrEqual", {offset, k});
  return {where(is_kept, form.input(0), constant_like(form.input(0), 0))};
}

/// As many heads of keys as of queries, each [N,heads,length,features], and nothing else but a mask
/// and a scale: what exporters write.
bool is_plain_attention(const Node& node) {
  constexpr int kMask = 3;
  for (int i = kMask + 1; i < node.input_count(); ++i) {
    if (node.input(i) != nullptr) return false;
  }
  for (int i = 1; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && !node.output(i)->is_unused()) return false;
  }
  for (int i = 0; i < kMask; ++i) {
    const auto& shape = node.input(i)->shape();
    if (!shape || shape->rank() != 4 || !(*shape)[1].same_as((*node.input(0)->shape())[1])) {
      return false;
    }
  }
  return node.attributes.get_int("is_causal", 0) == 0 &&
         node.attributes.get_float("softcap", 0) == 0 &&
         node.attributes.get_int("left_window_size", -1) < 0 &&
         node.attributes.get_int("right_window_size", -1) < 0 &&
         (node.attributes.has("scale") || (*node.input(0)->shape())[3].is_known());
}

/// softmax(q k^T scale + mask) v.
Results attention(const OlderForm& form) {
  if (!is_plain_attention(form.node)) return {};
  const Dim& features = (*form.node.input(0)->shape())[3];
  const double scale = form.node.attributes.has("scale")
                           ? static_cast<double>(form.node.attributes.get_float("scale", 1))
                           : 1 / std::sqrt(static_cast<double>(features.value()));
  const Expr keys =
      call("Transpose", {form.input(1)}, {{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}});
  Expr scores = call("MatMul", {form.input(0), keys}) * scale;
  if (const Expr mask = form.input(3)) {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    scores = mask.dtype() == DType::boolean ? where(mask, scores, constant_like(scores, kNever))
                                            : scores + mask;
  }
  return {call("MatMul", {call("Softmax", {scores}, {{"axis", -1}}), form.input(2)})};
}

constexpr std::array kOps{
    OlderFormRule{"Swish", 24, swish},
    OlderFormRule{"Attention", 23, attention},
    OlderFormRule{"RMSNormalization", 23, rms_norm},
    OlderFormRule{"Gelu", 20, gelu},
    OlderFormRule{"GroupNormalization", 18, group_norm},
    OlderFormRule{"Mish", 18, mish},
    OlderFormRule{"LayerNormalization", 17, layer_norm},
    OlderFormRule{"CastLike", 15, cast_like},
    OlderFormRule{"HardSwish", 14, hard_swish},
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
