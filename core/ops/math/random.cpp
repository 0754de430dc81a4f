#include "core/ops/math/random.h"

#include <cmath>

#include "core/ops/math/dropout.h"
#include "core/ops/registry.h"

namespace graft {

RandomSource RandomSource::of(const Node& node) {
  RandomSource source{.op_id = dropout_id(node), .is_twister = node.attributes.has("seed")};
  if (!source.is_twister) return source;
  const Attribute& seed = *node.attributes.find("seed");
  if (std::holds_alternative<float>(seed.value)) {
    // The random ops have a float: what does not fit an integer counts as 0.
    const auto number = static_cast<double>(node.attributes.get_float("seed", 0.0F));
    constexpr double kMost = 9.0e18;
    if (number > -kMost && number < kMost) {
      source.seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
    }
  } else {
    source.seed = static_cast<std::uint64_t>(node.attributes.get_int("seed", 0));
  }
  return source;
}

double RandomNumbers::normal() {
  if (!is_twister_) return philox_.normal(index_++);
  if (spare_) {
    const double value = *spare_;
    spare_.reset();
    return value;
  }
  double a = 0.0;
  double b = 0.0;
  double radius = 0.0;
  do {
    a = 2.0 * uniform() - 1.0;
    b = 2.0 * uniform() - 1.0;
    radius = a * a + b * b;
  } while (radius >= 1.0 || radius == 0.0);
  const double factor = std::sqrt(-2.0 * std::log(radius) / radius);
  spare_ = factor * a;
  return factor * b;
}

namespace {

/// The element type that attribute `dtype` names, else `otherwise`.
DType chosen_type(const InferContext& context, DType otherwise) {
  const std::int64_t number = context.attributes().get_int("dtype", 0);
  if (number == 0) return otherwise;
  if (number < 0 || number > INT32_MAX || !is_known_dtype(static_cast<int>(number))) {
    context.fail(ErrorKind::type, "dtype is ", number, ", which is not an element type");
  }
  return static_cast<DType>(number);
}

void check_seed(const InferContext& context) {
  RandomSource::of(context.node());  // refuses a seed that is no number
}

DType float_type(const InferContext& context, DType otherwise) {
  const DType dtype = chosen_type(context, otherwise);
  if (dtype != DType::undefined && !is_float(dtype)) {
    context.fail(ErrorKind::type, "dtype is ", dtype, ", wanted a float type");
  }
  return dtype;
}

void infer_random(InferContext& context) {
  check_seed(context);
  if (!context.attributes().has("shape")) context.fail(ErrorKind::model, "it has no shape");
  context.set_output(0, float_type(context, DType::f32),
                     SymShape(Shape(context.attributes().get_ints("shape"))));
}

void set_like(InferContext& context, DType dtype) {
  const SymShape* const shape = context.shape(0);
  context.set_output(0, dtype, shape == nullptr ? std::nullopt : std::optional(*shape));
}

void infer_random_like(InferContext& context) {
  check_seed(context);
  context.input(0);
  set_like(context, float_type(context, context.dtype(0)));
}

void infer_bernoulli(InferContext& context) {
  check_seed(context);
  context.input(0);
  set_like(context, chosen_type(context, context.dtype(0)));
}

void infer_multinomial(InferContext& context) {
  check_seed(context);
  context.require_rank(0, 2, 2);
  const std::int64_t count = context.attributes().get_int("sample_size", 1);
  if (count < 0) context.fail(ErrorKind::argument, "sample_size is ", count);
  const DType dtype = chosen_type(context, DType::i32);
  if (dtype != DType::i32 && dtype != DType::i64) {
    context.fail(ErrorKind::type, "dtype is ", dtype, ", wanted i32 or i64");
  }
  const SymShape* const x = context.shape(0);
  if (x != nullptr && (*x)[1].is_known() && (*x)[1].value() == 0) {
    context.fail(ErrorKind::shape, "there are no classes in ", *x);
  }
  context.set_output(0, dtype, SymShape{x == nullptr ? Dim() : (*x)[0], Dim(count)});
}

constexpr NotDifferentiable kDrawn{"its result is drawn, not computed"};

/// The numbers do not depend on the elements of the input; as torch.bernoulli.
std::vector<Expr> no_gradient(const Gradient& /*g*/) {
  return {};
}

Attributes of_shape(std::vector<std::int64_t> shape, Attributes attributes = {}) {
  attributes.set({"shape", std::move(shape)});
  return attributes;
}

/// Types are chosen: those of the sweep differ from run to run.
std::vector<Sample> random_samples() {
  const Attributes f64{{"dtype", static_cast<int>(DType::f64)}};
  return {
      {"plain", {}, of_shape({3, 5}, f64)},
      {"seed", {}, of_shape({7}, {{"dtype", static_cast<int>(DType::f64)}, {"seed", 3.0F}})},
      {"f32", {}, of_shape({3, 5})},
      {"scalar", {}, of_shape({})},
      {"empty", {}, of_shape({0, 2})},
  };
}

std::vector<Sample> random_like_samples(const char* first, const char* second) {
  return {
      {"settings", {{{2, 1}}}, {{first, 0.25F}, {second, 0.5F}}},
      {"doubles", {{{2}}}, {{"dtype", static_cast<int>(DType::f64)}}},
      {"plain", {{{3, 5}}}},
      {"seed", {{{7}}}, {{"seed", 3.0F}}},
      {"of_integers",
       {{.shape = {2, 3}, .dtype = DType::i64}},
       {{"dtype", static_cast<int>(DType::f32)}}},
      {"empty", {{{0, 2}}}},
  };
}

std::vector<Sample> bernoulli_samples() {
  const std::string jumps = "its result jumps";
  const SampleInput p{.shape = {3, 50}, .low = 0.0, .high = 1.0};
  return {
      {.name = "plain", .inputs = {p}, .no_gradient_check = jumps},
      {.name = "seed", .inputs = {p}, .attributes = {{"seed", 2.0F}}, .no_gradient_check = jumps},
      {"flags", {p}, {{"dtype", static_cast<int>(DType::boolean)}}},
      {"i8", {p}, {{"dtype", static_cast<int>(DType::i8)}}},
      {.name = "sure", .inputs = {{.shape = {3}, .values = {0, 1, 1}}}, .no_gradient_check = jumps},
      {"empty", {{.shape = {0}}}},
      {"of_one", {{.shape = {2, 1}, .low = 0.0}}, {{"dtype", static_cast<int>(DType::i8)}}},
  };
}

std::vector<Sample> multinomial_samples() {
  const SampleInput logits{.shape = {3, 5}, .low = -2.0, .high = 2.0};
  return {
      {"one", {logits}},
      {"many", {logits}, {{"sample_size", 20}, {"seed", 1.0F}}},
      {"i64", {logits}, {{"dtype", static_cast<int>(DType::i64)}}},
      {"one_class", {{.shape = {2, 1}}}, {{"sample_size", 3}}},
      {"none", {logits}, {{"sample_size", 0}}},
      {"empty", {{.shape = {0, 2}}}},
  };
}

OpDef random_op(std::string_view name, bool is_like, std::string_view first,
                std::string_view second, Samples samples) {
  std::vector<AttributeDef> attributes{{"dtype", AttributeType::integer},
                                       {"seed", AttributeType::number},
                                       {first, AttributeType::number},
                                       {second, AttributeType::number}};
  if (!is_like) attributes.push_back({"shape", AttributeType::integers, true});
  return {.name = name,
          .since = {{1}, {22, "bfloat16"}},
          .inputs = is_like ? std::vector<Param>{{"input"}} : std::vector<Param>{},
          .outputs = {{"output"}},
          .attributes = std::move(attributes),
          .infer = is_like ? infer_random_like : infer_random,
          .backward = is_like ? Backward(no_gradient) : Backward(kDrawn),
          .samples = samples};
}

}  // namespace

/// RandomNormal, RandomUniform and their Like forms, Bernoulli, Multinomial. With a seed the first
/// five give the numbers of NumPy's RandomState(seed) in the first run, of seed + 1 in the second;
/// without, numbers that depend on the output's name and the run.
void register_random(OpRegistry& registry) {
  registry.add(random_op("RandomNormal", false, "mean", "scale", random_samples));
  registry.add(random_op("RandomNormalLike", true, "mean", "scale",
                         [] { return random_like_samples("mean", "scale"); }));
  registry.add(random_op("RandomUniform", false, "low", "high", random_samples));
  registry.add(random_op("RandomUniformLike", true, "low", "high",
                         [] { return random_like_samples("low", "high"); }));
  registry.add({.name = "Bernoulli",
                .since = {{15}, {22, "bfloat16"}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = {{"dtype", AttributeType::integer}, {"seed", AttributeType::number}},
                .infer = infer_bernoulli,
                .backward = no_gradient,
                .samples = bernoulli_samples});
  registry.add({.name = "Multinomial",
                .since = {{7}, {22, "bfloat16"}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = {{"dtype", AttributeType::integer},
                               {"sample_size", AttributeType::integer},
                               {"seed", AttributeType::number}},
                .infer = infer_multinomial,
                .backward = kDrawn,
                .samples = multinomial_samples});
}

}  // namespace graft
