#include <string_view>

#include "core/ops/builder.h"
#include "core/ops/math/dropout.h"
#include "core/ops/registry.h"

namespace graft {

std::uint64_t dropout_id(const Node& node) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : node.output(0)->name()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

namespace {

void check_ratio(const InferContext& context, double ratio) {
  if (!(ratio >= 0.0 && ratio <= 1.0)) {
    context.fail(ErrorKind::argument, "ratio is ", ratio, ", wanted a share from 0 to 1");
  }
}

/// Throws Error{shape} if input `index` is known to hold another number of elements than one.
void require_one_element(const InferContext& context, int index) {
  const SymShape* const shape = context.shape(index);
  if (shape == nullptr || !shape->known() || shape->known()->size() == 1) return;
  context.fail(ErrorKind::shape, "'", context.input(index).name(), "' is ", *shape,
               ", wanted a scalar");
}

void infer_dropout(InferContext& context) {
  require_one_element(context, 1);
  require_one_element(context, 2);
  if (const Tensor ratio = context.constant(1); ratio.defined()) {
    if (!is_float(ratio.dtype())) {
      context.fail(ErrorKind::type, "ratio is ", ratio.dtype(), ", wanted a float type");
    }
    check_ratio(context, to_double(ratio).front());
  }
  const DType mode = context.dtype(2);
  if (mode != DType::undefined && mode != DType::boolean) {
    context.fail(ErrorKind::type, "training_mode is ", mode, ", wanted bool");
  }
  context.copy_type(0);
  context.set_output(
      1, DType::boolean,
      context.shape(0) == nullptr ? std::nullopt : std::optional<SymShape>(*context.shape(0)));
}

void infer_dropout_training(InferContext& context) {
  check_ratio(context, context.attributes().get_float("ratio", 0.5F));
  context.copy_type(0);
}

/// Before 12 the ratio is an attribute (and only inference is defined); before 10 the mask has the
/// type of the data.
void upgrade_dropout(Node& node, std::int64_t from, Builder& builder) {
  if (from >= 12) return;
  if (node.attributes.has("ratio")) {
    const float ratio = node.attributes.get_float("ratio", 0.5F);
    node.set_input(1, builder.constant(Tensor::scalar(ratio)));
  }
  for (const char* name : {"ratio", "is_test", "consumed_inputs"}) node.attributes.erase(name);
  if (from >= 10 || node.output(1) == nullptr || node.output(1)->is_unused()) return;
  const DType dtype = node.input(0)->dtype();
  if (dtype == DType::undefined) {
    fail(ErrorKind::unsupported, node.label(), ": the element type of its mask is not known");
  }
  const Node* const newest = builder.node("Dropout", "", node.copy_inputs(), 2, node.attributes);
  builder.graph().replace_all_uses(node.output(0), newest->output(0));
  const Expr mask = cast(builder.expr(newest->output(1)), dtype);
  builder.graph().replace_all_uses(node.output(1), mask.value());
}

/// The same mask again, so nothing is stored. Training mode that is decided during the run chooses
/// between that and the plain gradient.
std::vector<Expr> dropout_rule(const Gradient& g) {
  const Value* const mode = g.node().input(2);
  const Tensor known = constant_of(mode);
  if (mode == nullptr || (known.defined() && !known.values<const bool>()[0])) return {g.dy()};
  float ratio = 0.5F;
  if (g.node().input(1) != nullptr) {
    const Tensor given = constant_of(g.node().input(1));
    if (!given.defined()) {
      fail(ErrorKind::unsupported, g.node().label(),
           ": the ratio must be known before the run to differentiate it");
    }
    ratio = static_cast<float>(to_double(given).front());
  }
  const Expr dx = call_internal("DropoutTraining", {g.dy()},
                                {{"ratio", ratio},
                                 {"seed", g.attributes().get_int("seed", 0)},
                                 {"twister", static_cast<int>(g.attributes().has("seed"))},
                                 {"op_id", dropout_id(g.node())}});
  return {known.defined() ? dx : where(g.x(2), dx, g.dy())};
}

/// y = mask * x / (1 - ratio) is linear and symmetric: its gradient is itself.
std::vector<Expr> dropout_training_rule(const Gradient& g) {
  return {call_internal("DropoutTraining", {g.dy()}, g.attributes())};
}

SampleInput ratio_input(double ratio) {
  return {.shape = {}, .values = {ratio}, .is_constant = true};
}
SampleInput mode_input(bool training) {
  return {
      .shape = {}, .values = {training ? 1.0 : 0.0}, .dtype = DType::boolean, .is_constant = true};
}

std::vector<Sample> dropout_samples() {
  return {
      {"inference", {{.shape = {3, 5}}}},
      {"inference_mask", {{.shape = {3, 5}}, ratio_input(0.3)}, {}, 2},
      {"inference_said", {{.shape = {3, 5}}, ratio_input(0.3), mode_input(false)}, {}, 2},
      {"training", {{.shape = {7, 9}}, ratio_input(0.5), mode_input(true)}, {{"seed", 3}}, 2},
      {"training_no_mask", {{.shape = {7, 9}}, ratio_input(0.25), mode_input(true)}},
      {"training_default_ratio", {{.shape = {7, 9}}, absent(), mode_input(true)}, {}, 2},
      {"training_nothing_dropped", {{.shape = {7, 9}}, ratio_input(0.0), mode_input(true)}, {}, 2},
      {"scalar", {{.shape = {}}, ratio_input(0.5), mode_input(true)}, {}, 2},
      {"one_row", {{.shape = {1, 5}}, ratio_input(0.5), mode_input(true)}, {}, 2},
      {"empty", {{.shape = {0, 2}}, ratio_input(0.5), mode_input(true)}, {}, 2},
      {"large", {{.shape = {5, 40001}}, ratio_input(0.4), mode_input(true)}, {}, 2},
  };
}

std::vector<Sample> dropout_training_samples() {
  const auto attributes = [](float ratio, std::int64_t seed, std::int64_t op_id) {
    return Attributes{{"ratio", ratio}, {"seed", seed}, {"op_id", op_id}};
  };
  return {
      {"half", {{.shape = {7, 9}}}, attributes(0.5F, 1, 0)},
      {"other_op", {{.shape = {7, 9}}}, attributes(0.5F, 1, 1)},
      {"nothing_dropped", {{.shape = {4, 4}}}, attributes(0.0F, 1, 0)},
      {"all_dropped", {{.shape = {4, 4}}}, attributes(1.0F, 1, 0)},
      {"scalar", {{.shape = {}}}, attributes(0.5F, 2, 0)},
      {"one_row", {{.shape = {1, 5}}}, attributes(0.5F, 2, 0)},
      {"empty", {{.shape = {2, 0}}}, attributes(0.5F, 1, 0)},
      {"large", {{.shape = {5, 40001}}}, attributes(0.1F, -7, 3)},
      {"twister", {{.shape = {7, 9}}}, {{"ratio", 0.5F}, {"seed", 4}, {"twister", 1}}},
  };
}

}  // namespace

/// Dropout, and DropoutTraining, which training steps use instead: whether element i survives
/// depends on (seed, op id, RunState::step, i) alone, so the mask is never stored. A Dropout
/// without a seed has seed 0; two nodes still differ, by the names of their outputs. One with a
/// seed, and so a gradient with `twister`, draws the reference's numbers (random.h).
void register_dropout(OpRegistry& registry) {
  registry.add(
      {.name = "Dropout",
       .since = {{1},
                 {6},
                 {7, "inference only"},
                 {10, "the mask is bool"},
                 {12, "ratio and training_mode as inputs"},
                 {13, "bfloat16"},
                 {22}},
       .inputs = {{"data"}, {"ratio", Arity::optional}, {"training_mode", Arity::optional}},
       .outputs = {{"output"}, {"mask", Arity::optional}},
       .attributes = {{"seed", AttributeType::integer}},
       .infer = infer_dropout,
       .upgrade = upgrade_dropout,
       .aliases = {{0, 0, AliasKind::in_place}},
       .draws = Draws::by_node,
       .backward = dropout_rule,
       .samples = dropout_samples});
  registry.add({.name = "DropoutTraining",
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = {{"data"}},
                .outputs = {{"output"}},
                .attributes = {{"ratio", AttributeType::number},
                               {"seed", AttributeType::integer},
                               {"op_id", AttributeType::integer},
                               {"twister", AttributeType::integer}},
                .infer = infer_dropout_training,
                .aliases = {{0, 0, AliasKind::in_place}},
                .draws = Draws::by_attributes,
                .backward = dropout_training_rule,
                .samples = dropout_training_samples});
}

}  // namespace graft
