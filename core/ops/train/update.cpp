#include <algorithm>

#include "core/ops/train/product_update_kernels.h"
#include "core/ops/train/update_lowering.h"

namespace graft {
namespace {

constexpr NotDifferentiable kUpdate{"an optimizer update is the end of a step"};

void require_shape_of_parameter(const InferContext& context, int index) {
  const SymShape* const parameter = context.shape(0);
  const SymShape* const other = context.shape(index);
  if (parameter == nullptr || other == nullptr) return;
  const auto may_be_one = [](const Dim& a, const Dim& b) {
    return !a.is_known() || !b.is_known() || a.value() == b.value();
  };
  if (!std::ranges::equal(*parameter, *other, may_be_one)) {
    context.fail(ErrorKind::shape, "'", context.input(index).name(), "' is ",
                 context.input(index).type(), ", the parameter ", context.input(0).type());
  }
}

void require_state_type(const InferContext& context, int index) {
  const DType parameter = context.dtype(0);
  const DType state = context.dtype(index);
  const bool is_wide = parameter == DType::f32 || parameter == DType::f64;
  if (parameter == DType::undefined || state == DType::undefined || state == parameter ||
      (is_wide && state == DType::bf16)) {
    return;
  }
  context.fail(ErrorKind::type, "state '", context.input(index).name(), "' is ", state,
               ", the parameter ", parameter, "; wanted the same, or bf16 for f32 and f64");
}

void infer_update(InferContext& context) {
  infer_states(context);
  require_shape_of_parameter(context, 1);
}

SampleInput tensor(double low = -1.0, double high = 1.0) {
  return {.shape = {3, 7}, .low = low, .high = high};
}
/// A gradient of mixed precision.
SampleInput bf16(const Shape& shape = {3, 7}) {
  return {.shape = shape, .dtype = DType::bf16};
}
SampleInput rate() {
  return {.shape = {}, .values = {0.1}};
}
SampleInput step(double count) {
  return {.shape = {}, .values = {count}, .dtype = DType::i64};
}
SampleInput large() {
  return {.shape = {40000}};
}
SampleInput large_positive() {
  return {.shape = {40000}, .low = 0.1, .high = 1.0};
}

Attribute number(std::string_view name, float value) {
  return {name, value};
}

/// Plain SGD.
bool adds_a_multiple(const Node& sgd) {
  constexpr int kMomentum = 4;
  return sgd.input(kMomentum) == nullptr && sgd.attributes.get_float("weight_decay", 0.0F) == 0.0F;
}

std::vector<Sample> sgd_samples() {
  const Attributes momentum{number("momentum", 0.9F), number("weight_decay", 0.01F)};
  return {
      {"plain", {tensor(), tensor(), rate(), step(1)}},
      {"weight_decay", {tensor(), tensor(), rate(), step(1)}, {number("weight_decay", 0.1F)}},
      {"first_momentum", {tensor(), tensor(), rate(), step(1), tensor()}, momentum, 2},
      {"momentum", {tensor(), tensor(), rate(), step(2), tensor()}, momentum, 2},
      {"nesterov",
       {tensor(), tensor(), rate(), step(3), tensor()},
       {number("momentum", 0.9F), {"nesterov", 1}},
       2},
      {"dampening",
       {tensor(), tensor(), rate(), step(3), tensor()},
       {number("momentum", 0.9F), number("dampening", 0.5F)},
       2},
      {"large", {large(), large(), rate(), step(3), large()}, momentum, 2},
      {"bf16", {large(), bf16({40000}), rate(), step(3), large()}, momentum, 2},
      {"empty", {{.shape = {0}}, {.shape = {0}}, rate(), step(1)}},
  };
}

std::vector<Sample> adam_samples() {
  const std::vector<SampleInput> inputs{tensor(), tensor(),        rate(),
                                        step(3),  tensor(-.1, .1), tensor(0.01, 0.1)};
  return {
      {"plain", inputs, {}, 3},
      {"first_step",
       {tensor(),
        tensor(),
        rate(),
        step(1),
        {.shape = {3, 7}, .low = 0, .high = 0},
        {.shape = {3, 7}, .low = 0, .high = 0}},
       {},
       3},
      {"weight_decay", inputs, {number("weight_decay", 0.1F)}, 3},
      {"decoupled", inputs, {number("weight_decay", 0.1F), {"decoupled", 1}}, 3},
      {"betas", inputs, {number("beta1", 0.5F), number("beta2", 0.9F), number("epsilon", .1F)}, 3},
      {"large", {large(), large(), rate(), step(2), large(), large_positive()}, {}, 3},
      {"bf16", {tensor(), bf16(), rate(), step(3), tensor(-.1, .1), tensor(0.01, 0.1)}, {}, 3},
  };
}

std::vector<Sample> rmsprop_samples() {
  const SampleInput squares = tensor(0.5, 1.0);
  return {
      {"plain", {tensor(), tensor(), rate(), step(1), squares}, {}, 2},
      {"weight_decay",
       {tensor(), tensor(), rate(), step(1), squares},
       {number("weight_decay", 0.1F)},
       2},
      {"momentum",
       {tensor(), tensor(), rate(), step(2), squares, tensor()},
       {number("momentum", 0.9F), number("alpha", 0.9F), number("epsilon", 1e-3F)},
       3},
      {"centered",
       {tensor(), tensor(), rate(), step(2), squares, tensor(), tensor(-.1, .1)},
       {},
       4},
      {"large", {large(), large(), rate(), step(2), large_positive()}, {}, 2},
      {"bf16", {tensor(), bf16(), rate(), step(1), squares}, {}, 2},
  };
}

std::vector<Sample> adagrad_samples() {
  const SampleInput sums = tensor(0.5, 1.0);
  return {
      {"plain", {tensor(), tensor(), rate(), step(1), sums}, {}, 2},
      {"decay",
       {tensor(), tensor(), rate(), step(5), sums},
       {number("lr_decay", 0.1F), number("weight_decay", 0.1F), number("epsilon", 1e-3F)},
       2},
      {"bf16", {tensor(), bf16(), rate(), step(1), sums}, {}, 2},
  };
}

std::vector<Sample> accumulate_samples() {
  return {{"plain", {tensor(), tensor()}},
          {"scaled", {tensor(), tensor()}, {number("scale", .25F)}},
          {"bf16", {tensor(), bf16()}, {number("scale", .25F)}}};
}

std::vector<Sample> assign_samples() {
  return {{"plain", {tensor(), tensor()}}};
}

constexpr AttributeType kNumber = AttributeType::number;

/// Optimizers that keep averages or sums of squared gradients.
void add_adaptive(OpRegistry& registry) {
  constexpr AliasKind kState = AliasKind::state;
  add_update<adam_samples>(
      registry, {.name = "AdamUpdate",
                 .domain = kInternalDomain,
                 .since = {{1}},
                 .inputs = {{"parameter"}, {"gradient"}, {"lr"}, {"step"}, {"mean"}, {"square"}},
                 .outputs = {{"new_parameter"}, {"new_mean"}, {"new_square"}},
                 .attributes = {{"beta1", kNumber},
                                {"beta2", kNumber},
                                {"epsilon", kNumber},
                                {"weight_decay", kNumber},
                                {"decoupled", AttributeType::integer}},
                 .infer = infer_update,
                 .aliases = {{0, 0, kState}, {1, 4, kState}, {2, 5, kState}},
                 .lower = lower_adam,
                 .backward = kUpdate});
  add_update<rmsprop_samples>(
      registry, {.name = "RmspropUpdate",
                 .domain = kInternalDomain,
                 .since = {{1}},
                 .inputs = {{"parameter"},
                            {"gradient"},
                            {"lr"},
                            {"step"},
                            {"square"},
                            {"momentum_buffer", Arity::optional},
                            {"mean", Arity::optional}},
                 .outputs = {{"new_parameter"},
                             {"new_square"},
                             {"new_momentum_buffer", Arity::optional},
                             {"new_mean", Arity::optional}},
                 .attributes = {{"alpha", kNumber},
                                {"epsilon", kNumber},
                                {"momentum", kNumber},
                                {"weight_decay", kNumber}},
                 .infer = infer_update,
                 .aliases = {{0, 0, kState}, {1, 4, kState}, {2, 5, kState}, {3, 6, kState}},
                 .lower = lower_rmsprop,
                 .backward = kUpdate});
  add_update<adagrad_samples>(
      registry,
      {.name = "AdagradUpdate",
       .domain = kInternalDomain,
       .since = {{1}},
       .inputs = {{"parameter"}, {"gradient"}, {"lr"}, {"step"}, {"sum"}},
       .outputs = {{"new_parameter"}, {"new_sum"}},
       .attributes = {{"lr_decay", kNumber}, {"epsilon", kNumber}, {"weight_decay", kNumber}},
       .infer = infer_update,
       .aliases = {{0, 0, kState}, {1, 4, kState}},
       .lower = lower_adagrad,
       .backward = kUpdate});
}

}  // namespace

void infer_states(InferContext& context) {
  const OpDef& def = OpRegistry::instance().get(context.node());
  for (const Alias& alias : def.aliases) {
    if (!context.has_input(alias.input)) continue;
    require_state_type(context, alias.input);
    context.copy_type(alias.input, alias.output);
    require_shape_of_parameter(context, alias.input);
  }
}

std::vector<Sample> with_stored_states(std::vector<Sample> update) {
  constexpr auto first_state = static_cast<std::size_t>(kFirstState);
  const std::size_t count = update.size();
  for (std::size_t i = 0; i < count; ++i) {
    Sample sample = update[i];
    if (sample.inputs.size() <= first_state) continue;
    sample.name += "_bf16_state";
    for (std::size_t at = first_state; at < sample.inputs.size(); ++at) {
      sample.inputs[at].dtype = DType::bf16;
    }
    sample.relative = 0x1p-7;  // f32 and f64 may round to either side
    update.push_back(std::move(sample));
  }
  return update;
}

/// Optimizer updates. Every output is the new content of an input, so parameter and state are
/// updated in place; `lr` is a scalar input, so schedules need no new plan; `step` counts updates
/// from 1. State may be stored in bf16 (StoredStates). Formulas are those of torch.optim
/// (documentation of PyTorch 2).
void register_update(OpRegistry& registry) {
  constexpr AliasKind kState = AliasKind::state;
  add_update<sgd_samples>(
      registry,
      {.name = "SgdUpdate",
       .domain = kInternalDomain,
       .since = {{1}},
       .inputs =
           {{"parameter"}, {"gradient"}, {"lr"}, {"step"}, {"momentum_buffer", Arity::optional}},
       .outputs = {{"new_parameter"}, {"new_momentum_buffer", Arity::optional}},
       .attributes = {{"momentum", kNumber},
                      {"dampening", kNumber},
                      {"weight_decay", kNumber},
                      {"nesterov", AttributeType::integer}},
       .infer = infer_update,
       .aliases = {{0, 0, kState}, {1, 4, kState}},
       .product_form = {.only_adds = adds_a_multiple},
       .lower = lower_sgd,
       .backward = kUpdate});
  add_adaptive(registry);
  // buffer + scale * gradient: sums gradients over micro-batches.
  registry.add({.name = "Accumulate",
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = {{"buffer"}, {"gradient"}},
                .outputs = {{"new_buffer"}},
                .attributes = {{"scale", kNumber}},
                .infer = infer_update,
                .aliases = {{0, 0, kState}},
                .lower = lower_accumulate,
                .backward = kUpdate,
                .samples = accumulate_samples});
  registry.add({.name = "Assign",
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = {{"variable"}, {"content"}},
                .outputs = {{"new_variable"}},
                .infer = infer_update,
                .aliases = {{0, 0, kState}},
                .lower = lower_assign,
                .backward = kUpdate,
                .samples = assign_samples});
}

}  // namespace graft
