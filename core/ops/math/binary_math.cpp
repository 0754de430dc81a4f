#include <optional>

#include "core/ops/kernels/elementwise_samples.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using Gradients = std::vector<Expr>;

/// The exponent when it is one number that is known before the run.
std::optional<double> known_exponent(const Expr& exponent) {
  const Tensor tensor = constant_of(exponent.value());
  if (!tensor.defined() || tensor.size() != 1) return std::nullopt;
  return to_double(tensor).front();
}

/// d a^b/da = b a^(b-1), but 0 where b = 0; d a^b/db = a^b log a, but 0 where a = 0 and b >= 0:
/// the limits, as in PyTorch.
Gradients pow_rule(const Gradient& g) {
  const Expr a = g.x(0);
  if (const std::optional<double> exponent = known_exponent(g.x(1)); exponent && !g.needs(1)) {
    if (*exponent == 0.0) return {};
    if (*exponent == 1.0) return {g.dy()};
    if (*exponent == 2.0) return {g.dy() * (a * 2.0)};
    return {g.dy() * (pow(a, *exponent - 1.0) * *exponent)};
  }
  const Expr b = cast(g.x(1), a.dtype());
  const Expr zero = constant_like(a, 0.0);
  Expr da;
  Expr db;
  if (g.needs(0)) {
    da = g.dy() * where(equal(b, zero), zero, b * call("Pow", {a, b - 1.0}));
  }
  if (g.needs(1)) {
    const Expr flat = call("And", {equal(a, zero), call("GreaterOrEqual", {b, zero})});
    db = g.dy() * where(flat, zero, g.y() * log(a));
  }
  return {da, db};
}

/// Type of the base; the exponent may have another.
void infer_pow(InferContext& context) {
  context.set_output(0, context.dtype(0), broadcast_inputs(context));
}

std::vector<Sample> pow_samples() {
  const SampleInput base{.low = 0.3, .high = 2.0};
  const SampleInput exponent{.low = -2.0, .high = 2.0};
  std::vector<Sample> samples = binary_samples(base, exponent);
  for (const double constant : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 1.7}) {
    samples.push_back({text("constant_", static_cast<int>(constant * 10) + 100),
                       {{.shape = {3, 7}, .low = 0.3, .high = 2.0},
                        {.shape = {}, .values = {constant}, .is_constant = true}}});
  }
  samples.push_back({"i64_exponent",
                     {{.shape = {2, 4}, .low = -2.0, .high = 2.0},
                      {.shape = {4}, .values = {0, 1, 2, 3}, .dtype = DType::i64}}});
  samples.push_back({"i32_base",
                     {{.shape = {4}, .values = {-3, 0, 1, 7}, .dtype = DType::i32},
                      {.shape = {3, 1}, .values = {0, 1, 2}, .dtype = DType::i32}}});
  samples.push_back({"i32_base_float_exponent",
                     {{.shape = {3}, .values = {1, 4, 9}, .dtype = DType::i32},
                      {.shape = {3}, .values = {0.5, 1.5, 40.0}}}});
  samples.back().no_gradient_check = "the result is an integer";
  return samples;
}

/// y = a - b q with a whole q, constant between steps.
Gradients mod_rule(const Gradient& g) {
  Expr db;
  if (g.needs(1)) db = -(g.dy() * call("Round", {(g.x(0) - g.y()) / g.x(1)}));
  return {g.dy(), db};
}

void infer_mod(InferContext& context) {
  const std::int64_t fmod = context.attributes().get_int("fmod", 0);
  if (fmod != 0 && fmod != 1) {
    context.fail(ErrorKind::model, "attribute 'fmod' is ", fmod, ", wanted 0 or 1");
  }
  infer_broadcast(context);
}

std::vector<Sample> mod_samples() {
  const SampleInput a{.low = -5.0, .high = 5.0};
  const SampleInput b{.low = 0.7, .high = 1.3};
  std::vector<Sample> samples = binary_samples(a, b, {{"fmod", 1}});
  for (Sample& sample : samples) {
    if (sample.name.starts_with("many")) sample.no_gradient_check = kKinks;
  }
  const SampleInput x{.shape = {6}, .values = {-4, 7, 5, 4, -7, 8}};
  const SampleInput y{.shape = {6}, .values = {2.1, -3.4, 8, -2.1, 3.4, 5}};
  samples.push_back({"float_floor", {x, y}, {{"fmod", 0}}});
  samples.push_back({"float_truncate", {x, y}, {{"fmod", 1}}});
  const SampleInput i{.shape = {6}, .values = {-4, 7, 5, 4, -7, 8}, .dtype = DType::i64};
  const SampleInput j{.shape = {6}, .values = {2, -3, 8, -2, 3, 5}, .dtype = DType::i64};
  samples.push_back({"i64_floor", {i, j}});
  samples.push_back({"i64_truncate", {i, j}, {{"fmod", 1}}});
  return samples;
}

}  // namespace

/// Pow and Mod.
void register_binary_math(OpRegistry& registry) {
  registry.add({.name = "Pow",
                .since = {{7, "broadcasting as in NumPy"},
                          {12, "the exponent may have another type"},
                          {13, "bfloat16"},
                          {15}},
                .inputs = {{"X"}, {"Y"}},
                .outputs = {{"Z"}},
                .infer = infer_pow,
                .aliases = in_place_of_either(),
                .backward = pow_rule,
                .samples = pow_samples});
  registry.add({.name = "Mod",
                .since = {{10}, {13, "bfloat16"}, {28, "floats also with fmod = 0"}},
                .inputs = {{"A"}, {"B"}},
                .outputs = {{"C"}},
                .attributes = {{"fmod", AttributeType::integer}},
                .infer = infer_mod,
                .aliases = in_place_of_either(),
                .backward = mod_rule,
                .samples = mod_samples});
}

}  // namespace graft
