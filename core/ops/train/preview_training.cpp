#include "core/base/at.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

constexpr std::string_view kDomain = "ai.onnx.preview.training";

/// Inputs are R (rate), T (updates before this one), then lists of as many tensors each: X, G and
/// the `states` that the optimizer keeps. Outputs are the new X and states.
struct Lists {
  Lists(const Node& node, int states) : count(node.input_count() - 2), lists(states + 2) {
    if (count < lists || count % lists != 0) {
      fail(ErrorKind::model, node.label(), ": ", node.input_count(), " inputs, wanted R, T and ",
           lists, " lists of as many tensors each");
    }
    count /= lists;
  }

  int input(int list, int index) const { return 2 + list * count + index; }
  /// The state's place among the outputs; X is list 0.
  int output(int list, int index) const { return list * count + index; }

  int count;
  int lists;
};

template <int states>
void infer_optimizer(InferContext& context) {
  const Lists lists(context.node(), states);
  if (context.node().output_count() != lists.output(states + 1, 0)) {
    context.fail(ErrorKind::model, context.node().output_count(), " outputs, wanted ",
                 lists.output(states + 1, 0));
  }
  for (const int scalar : {0, 1}) {
    const SymShape* const shape = context.shape(scalar);
    if (shape != nullptr && shape->known() && shape->known()->size() != 1) {
      context.fail(ErrorKind::shape, "input ", scalar, " is ", *shape, ", wanted a scalar");
    }
  }
  for (int i = 0; i < lists.count; ++i) {
    context.copy_type(lists.input(0, i), lists.output(0, i));
    for (int list = 1; list < lists.lists; ++list) {
      context.require_same_dtype({lists.input(0, i), lists.input(list, i)});
      const SymShape* const x = context.shape(lists.input(0, i));
      const SymShape* const other = context.shape(lists.input(list, i));
      if (x != nullptr && other != nullptr && x->known() && other->known() &&
          x->known() != other->known()) {
        context.fail(ErrorKind::shape, "input ", lists.input(list, i), " is ", *other, ", wanted ",
                     *x, " as its tensor");
      }
      if (list > 1) context.copy_type(lists.input(list, i), lists.output(list - 1, i));
    }
  }
}

/// What the updates of all tensors of a node have in common.
struct Step {
  Step(const Node& owner, Builder& builder, const Expr& x)
      : node(owner),
        rate(reshape(cast(builder.expr(owner.input(0)), x.dtype()), {})),
        count(reshape(cast(builder.expr(owner.input(1)), x.dtype()), {})) {}

  double setting(std::string_view name, float otherwise = 0.0F) const {
    return node.attributes.get_float(name, otherwise);
  }
  /// The gradient of the loss and half the squared norm.
  Expr regularized(const Expr& x, const Expr& g) const {
    return x * setting("norm_coefficient") + g;
  }
  Expr is_first() const { return logical_not(greater(count, constant_like(count, 0.0))); }

  const Node& node;
  Expr rate;
  Expr count;
};

/// The new x and states, from x, g and the states.
using PreviewUpdate = std::vector<Expr> (*)(const Step& step, const std::vector<Expr>& values);

std::vector<Expr> momentum(const Step& step, const std::vector<Expr>& values) {
  const Expr& x = values[0];
  const Expr g = step.regularized(x, values[1]);
  const double alpha = step.setting("alpha");
  const Expr beta =
      where(step.is_first(), constant_like(x, 1.0), constant_like(x, step.setting("beta")));
  const Expr v = values[2] * alpha + beta * g;
  const bool is_nesterov = step.node.attributes.get_string("mode", "standard") == "nesterov";
  return {x - step.rate * (is_nesterov ? g + v * alpha : v), v};
}

std::vector<Expr> adagrad(const Step& step, const std::vector<Expr>& values) {
  const Expr& x = values[0];
  const Expr g = step.regularized(x, values[1]);
  const Expr rate = step.rate / (step.count * step.setting("decay_factor") + 1.0);
  const Expr h = values[2] + g * g;
  return {x - rate * g / (sqrt(h) + step.setting("epsilon", 1e-6F)), h};
}

/// 1 - base^count, and 1 before the first update.
Expr bias(const Step& step, double base) {
  const Expr power = call("Pow", {constant_like(step.count, base), step.count});
  return where(step.is_first(), constant_like(step.count, 1.0), 1.0 - power);
}

std::vector<Expr> adam(const Step& step, const std::vector<Expr>& values) {
  const Expr& x = values[0];
  const Expr g = step.regularized(x, values[1]);
  const double alpha = step.setting("alpha", 0.9F);
  const double beta = step.setting("beta", 0.999F);
  const Expr v = values[2] * alpha + g * (1.0 - alpha);
  const Expr h = values[3] * beta + g * g * (1.0 - beta);
  const Expr rate = step.rate * sqrt(bias(step, beta)) / bias(step, alpha);
  const Expr moved = x - rate * v / (sqrt(h) + step.setting("epsilon", 1e-6F));
  return {moved * (1.0 - step.setting("norm_coefficient_post")), v, h};
}

template <int states, PreviewUpdate update>
std::vector<Expr> expand_optimizer(const Node& node, Builder& builder) {
  const Lists lists(node, states);
  std::vector<Expr> outputs(static_cast<std::size_t>(lists.output(states + 1, 0)));
  for (int i = 0; i < lists.count; ++i) {
    std::vector<Expr> values;
    for (int list = 0; list < lists.lists; ++list) {
      values.push_back(builder.expr(node.input(lists.input(list, i))));
    }
    const std::vector<Expr> results = update(Step(node, builder, values[0]), values);
    for (int list = 0; list <= states; ++list) {
      at(outputs, lists.output(list, i)) = at(results, list);
    }
  }
  return outputs;
}

/// Two tensors; the lists from `squares` on are sums of squares.
Sample preview_sample(std::string name, int lists, int squares, double updates,
                      Attributes attributes, const Shape& second = {2, 2}) {
  Sample result{.name = std::move(name), .attributes = std::move(attributes)};
  result.inputs = {{.shape = {}, .values = {0.1}},
                   {.shape = {}, .values = {updates}, .dtype = DType::i64}};
  for (int list = 0; list < lists; ++list) {
    const double low = list < squares ? -1.0 : 0.5;
    result.inputs.push_back({.shape = {3}, .low = low, .high = 1.0});
    result.inputs.push_back({.shape = second, .low = low, .high = 1.0});
  }
  result.outputs = 2 * (lists - 1);
  return result;
}

std::vector<Sample> preview_momentum_samples() {
  const auto settings = [](const char* mode) {
    return Attributes{{"alpha", 0.9F}, {"beta", 0.8F}, {"norm_coefficient", 0.1F}, {"mode", mode}};
  };
  return {preview_sample("first", 3, 3, 0, settings("standard")),
          preview_sample("later", 3, 3, 3, settings("standard")),
          preview_sample("nesterov", 3, 3, 3, settings("nesterov")),
          preview_sample(
              "no_momentum", 3, 3, 1,
              {{"alpha", 0.0F}, {"beta", 1.0F}, {"norm_coefficient", 0.0F}, {"mode", "standard"}},
              {1, 3}),
          preview_sample("no_elements", 3, 3, 1, settings("nesterov"), {0, 3})};
}

std::vector<Sample> preview_adagrad_samples() {
  const Attributes decay{{"decay_factor", 0.1F}, {"norm_coefficient", 0.1F}, {"epsilon", 1e-3F}};
  return {preview_sample("plain", 3, 2, 0, {}), preview_sample("decay", 3, 2, 4, decay),
          preview_sample("one_row", 3, 2, 4, decay, {1, 3}),
          preview_sample("no_elements", 3, 2, 4, decay, {0, 3})};
}

std::vector<Sample> preview_adam_samples() {
  const Attributes norms{{"norm_coefficient", 0.1F}, {"norm_coefficient_post", 0.2F}};
  return {preview_sample("first", 4, 3, 0, {}), preview_sample("later", 4, 3, 2, norms),
          preview_sample("settings", 4, 3, 2,
                         {{"alpha", 0.5F}, {"beta", 0.75F}, {"epsilon", 1e-3F}}, {1, 3}),
          preview_sample("no_elements", 4, 3, 2, norms, {0, 3})};
}

OpDef optimizer(std::string_view name, std::vector<AttributeDef> attributes, Infer infer,
                Decomposition expand, Samples samples) {
  return {.name = name,
          .domain = kDomain,
          .since = {{1}},
          .inputs = {{"R"}, {"T"}, {"inputs", Arity::variadic}},
          .outputs = {{"outputs", Arity::variadic}},
          .attributes = std::move(attributes),
          .infer = infer,
          .backward = expand,
          .samples = samples};
}

}  // namespace

/// Momentum, Adagrad and Adam of ai.onnx.preview.training, for files that hold their own training
/// step: they run as simpler ops. TrainStep has updates of its own (update.cpp).
void register_preview_training(OpRegistry& registry) {
  constexpr AttributeType kSetting = AttributeType::number;
  registry.add(optimizer("Momentum",
                         {{"alpha", kSetting, true},
                          {"beta", kSetting, true},
                          {"mode", AttributeType::text, true},
                          {"norm_coefficient", kSetting, true}},
                         infer_optimizer<1>, {expand_optimizer<1, momentum>},
                         preview_momentum_samples));
  registry.add(
      optimizer("Adagrad",
                {{"decay_factor", kSetting}, {"epsilon", kSetting}, {"norm_coefficient", kSetting}},
                infer_optimizer<1>, {expand_optimizer<1, adagrad>}, preview_adagrad_samples));
  registry.add(optimizer("Adam",
                         {{"alpha", kSetting},
                          {"beta", kSetting},
                          {"epsilon", kSetting},
                          {"norm_coefficient", kSetting},
                          {"norm_coefficient_post", kSetting}},
                         infer_optimizer<2>, {expand_optimizer<2, adam>}, preview_adam_samples));
}

}  // namespace graft
