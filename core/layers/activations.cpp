#include <numbers>

#include "core/layers/kinds.h"
#include "core/ops/shape_rules.h"

namespace graft::layers {
namespace {

Value* unary(LayerContext& context, std::string_view kind, const std::string& given,
             std::string_view op, Value* input, Attributes attributes = {}) {
  return context.node(op, {input}, context.name(kind, given), std::move(attributes));
}

/// Before opset 13, Softmax and LogSoftmax flattened the dims behind the axis into one, which for
/// the last axis is what they do now.
Value* softmax(LayerContext& context, std::string_view kind, std::string_view op,
               const std::string& given, std::int64_t axis, Value* input) {
  const std::string name = context.name(kind, given);
  constexpr int kNewForm = 13;
  if (context.opset() < kNewForm) {
    const std::string who = text(kind, " '", name, "'");
    const int rank = shape_of(who, *input, 1, 64).rank();
    axis = normalize_axis(axis, rank, who);
    if (axis != rank - 1) {
      fail(ErrorKind::unsupported, who, ": before opset ", kNewForm, " only the last axis of '",
           input->name(), "', ", rank - 1, ", can be taken, not ", axis, "; the model imports ",
           context.opset());
    }
  }
  return context.node(op, {input}, name, {{"axis", axis}});
}

/// Puts the number that is left in the place of a -1, where that is known.
void resolve_open_dim(const std::string& who, const Dim& elements,
                      std::vector<std::int64_t>& dims) {
  std::int64_t* open = nullptr;
  std::int64_t given = 1;
  for (std::int64_t& dim : dims) {
    if (dim < 1 && (dim != -1 || open != nullptr)) {
      fail(ErrorKind::argument, who, ": a dim is ", dim,
           ", wanted numbers above 0, of which one may be -1");
    }
    if (dim == -1) open = &dim;
    if (dim != -1) given = checked_multiply(given, dim);
  }
  if (!elements.is_known()) return;
  const std::int64_t found = elements.value();
  if (open == nullptr ? found != given : found % given != 0) {
    fail(ErrorKind::shape, who, ": a sample has ", found, " elements, wanted ",
         open == nullptr ? "" : "a multiple of ", given);
  }
  if (open != nullptr) *open = found / given;
}

}  // namespace

Value* add(LayerContext& context, const Relu& layer, Value* input) {
  return unary(context, "relu", layer.name, "Relu", input);
}

Value* add(LayerContext& context, const Relu6& layer, Value* input) {
  const std::string name = context.name("relu6", layer.name);
  constexpr int kBoundsAreInputs = 11;
  if (context.opset() < kBoundsAreInputs) {
    return context.node("Clip", {input}, name, {{"min", 0.0F}, {"max", 6.0F}});
  }
  Value* const least = context.scalar(name + ".min", *input, 0);
  Value* const most = context.scalar(name + ".max", *input, 6);
  return context.node("Clip", {input, least, most}, name);
}

Value* add(LayerContext& context, const LeakyRelu& layer, Value* input) {
  const std::string name = context.name("leaky_relu", layer.name);
  require_within("leaky_relu '" + name + "'", "alpha", layer.alpha);
  return context.node("LeakyRelu", {input}, name, {{"alpha", layer.alpha}});
}

Value* add(LayerContext& context, const Sigmoid& layer, Value* input) {
  return unary(context, "sigmoid", layer.name, "Sigmoid", input);
}

Value* add(LayerContext& context, const Tanh& layer, Value* input) {
  return unary(context, "tanh", layer.name, "Tanh", input);
}

Value* add(LayerContext& context, const Gelu& layer, Value* input) {
  constexpr int kErf = 9;
  constexpr int kGelu = 20;
  if (context.opset() >= kGelu) return unary(context, "gelu", layer.name, "Gelu", input);
  const std::string name = context.name("gelu", layer.name);
  if (context.opset() < kErf) {
    fail(ErrorKind::unsupported, "gelu '", name, "': Erf came with opset ", kErf,
         ", the model imports ", context.opset(), "; convert the model to a newer opset");
  }
  // 0.5 x (1 + erf(x / sqrt 2)), node by node as PyTorch exports it: runtimes know the pattern.
  Value* const root = context.scalar(name + ".sqrt2", *input, std::numbers::sqrt2);
  Value* const scaled = context.node("Div", {input, root}, name + ".scaled");
  Value* const erf = context.node("Erf", {scaled}, name + ".erf");
  Value* const one = context.scalar(name + ".one", *input, 1);
  Value* const sum = context.node("Add", {erf, one}, name + ".sum");
  Value* const product = context.node("Mul", {input, sum}, name + ".product");
  Value* const half = context.scalar(name + ".half", *input, 0.5);
  return context.node("Mul", {product, half}, name);
}

Value* add(LayerContext& context, const Silu& layer, Value* input) {
  const std::string name = context.name("silu", layer.name);
  return context.node("Mul", {input, context.node("Sigmoid", {input}, name + ".sigmoid")}, name);
}

Value* add(LayerContext& context, const Softmax& layer, Value* input) {
  return softmax(context, "softmax", "Softmax", layer.name, layer.axis, input);
}

Value* add(LayerContext& context, const LogSoftmax& layer, Value* input) {
  return softmax(context, "log_softmax", "LogSoftmax", layer.name, layer.axis, input);
}

Value* add(LayerContext& context, const Flatten& layer, Value* input) {
  return unary(context, "flatten", layer.name, "Flatten", input, {{"axis", 1}});
}

Value* add(LayerContext& context, const Reshape& layer, Value* input) {
  const std::string name = context.name("reshape", layer.name);
  const std::string who = "reshape '" + name + "'";
  if (layer.shape.empty()) fail(ErrorKind::argument, who, ": no dims are given");
  const SymShape& from = shape_of(who, *input, 1, 64);
  std::vector<std::int64_t> target = layer.shape;
  resolve_open_dim(who, product(from, 1, from.rank()), target);
  target.insert(target.begin(), 0);  // the batch, copied
  return context.node("Reshape", {input, context.integers(name + ".shape", target)}, name);
}

Value* add(LayerContext& context, const Dropout& layer, Value* input) {
  const std::string name = context.name("dropout", layer.name);
  if (!(layer.ratio >= 0 && layer.ratio < 1)) {
    fail(ErrorKind::argument, "dropout '", name, "': ratio is ", layer.ratio,
         ", wanted one in [0, 1)");
  }
  constexpr int kRatioIsInput = 12;
  if (context.opset() < kRatioIsInput) {
    return context.node("Dropout", {input}, name, {{"ratio", layer.ratio}});
  }
  Value* const ratio = context.initializer(name + ".ratio", Tensor::scalar(layer.ratio));
  return context.node("Dropout", {input, ratio}, name);
}

}  // namespace graft::layers
