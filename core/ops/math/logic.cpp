#include <cmath>

#include "core/ops/kernels/elementwise_samples.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

constexpr NotDifferentiable kTruthValue{"its result is a truth value"};

void require_bool(const InferContext& context, int index) {
  const DType dtype = context.dtype(index);
  if (dtype == DType::boolean || dtype == DType::undefined) return;
  context.fail(ErrorKind::type, "input '", context.input(index).name(), "' is ", dtype,
               ", wanted bool");
}

void infer_logical(InferContext& context) {
  for (int i = 0; i < context.input_count(); ++i) require_bool(context, i);
  infer_broadcast_bool(context);
}

void infer_where(InferContext& context) {
  require_bool(context, 0);
  context.require_same_dtype({1, 2});
  const DType dtype = context.dtype(1) != DType::undefined ? context.dtype(1) : context.dtype(2);
  context.set_output(0, dtype, broadcast_inputs(context));
}

std::vector<Expr> where_rule(const Gradient& g) {
  const Expr zero = constant_like(g.dy(), 0.0);
  return {{}, where(g.x(0), g.dy(), zero), where(g.x(0), zero, g.dy())};
}

/// Whole numbers in a small range, so that equal ones occur.
std::vector<Sample> comparison_samples() {
  const SampleInput i64{.low = -2.0, .high = 3.0, .dtype = DType::i64};
  const SampleInput number{.shape = {2, 5}, .low = -1.0, .high = 1.0};
  const SampleInput ties{.shape = {5}, .values = {-1, -0.0, 0.0, 1, 1e30}};
  const SampleInput others{.shape = {5}, .values = {-1, 0.0, 1.0, 0, 1e30}};
  const SampleInput u8{.shape = {3}, .values = {0, 127, 255}, .dtype = DType::u8};
  const SampleInput column{.shape = {2, 1}, .values = {127, 128}, .dtype = DType::u8};
  return binary_samples(i64, i64) + std::vector<Sample>{{"floats", {number, number}},
                                                        {"ties", {ties, others}},
                                                        {"u8", {u8, column}}};
}

const SampleInput kBool{.low = 0.0, .high = 2.0, .dtype = DType::boolean};

std::vector<Sample> logical_samples() {
  const SampleInput a{.shape = {4}, .values = {0, 0, 1, 1}, .dtype = DType::boolean};
  const SampleInput b{.shape = {4}, .values = {0, 1, 0, 1}, .dtype = DType::boolean};
  const SampleInput column{.shape = {2, 1}, .values = {0, 1}, .dtype = DType::boolean};
  return binary_samples(kBool, kBool) +
         std::vector<Sample>{{"table", {a, b}}, {"table_column", {column, b}}};
}

std::vector<Sample> equal_samples() {
  const SampleInput a{.shape = {4}, .values = {0, 0, 1, 1}, .dtype = DType::boolean};
  const SampleInput b{.shape = {4}, .values = {0, 1, 0, 1}, .dtype = DType::boolean};
  return comparison_samples() + std::vector<Sample>{{"bools", {a, b}}};
}

std::vector<Sample> where_samples() {
  const auto call = [](std::string name, Shape condition, Shape x, Shape y,
                       DType dtype = DType::f32) {
    std::vector<double> choice(static_cast<std::size_t>(condition.size()));
    for (std::size_t i = 0; i < choice.size(); ++i) choice[i] = static_cast<double>(i * i % 3 % 2);
    return Sample{std::move(name),
                  {{.shape = condition, .values = choice, .dtype = DType::boolean},
                   {.shape = std::move(x), .low = -9.0, .high = 9.0, .dtype = dtype},
                   {.shape = std::move(y), .low = -9.0, .high = 9.0, .dtype = dtype}}};
  };
  return {call("same_shape", {2, 3}, {2, 3}, {2, 3}),
          call("scalar_x", {2, 3}, {}, {2, 3}),
          call("scalar_y", {2, 3}, {2, 3}, {}),
          call("two_scalars", {17}, {}, {}),
          call("all_scalars", {}, {}, {}),
          call("condition_row", {3}, {2, 3}, {2, 3}),
          call("condition_column", {2, 1}, {2, 3}, {2, 3}),
          call("condition_scalar", {}, {2, 3}, {3}),
          call("all_grow", {2, 1, 1}, {3, 1}, {4}),
          call("empty", {0, 3}, {3}, {1}),
          call("many", {17, 2111}, {17, 2111}, {2111}),
          call("i64", {5}, {5}, {1}, DType::i64),
          call("i16", {5}, {5}, {1}, DType::i16),
          call("u8", {5}, {5}, {1}, DType::u8),
          call("f64", {5}, {5}, {1}, DType::f64),
          call("bool", {5}, {5}, {1}, DType::boolean)};
}

void register_comparisons(OpRegistry& registry) {
  const std::vector<Since> since{{7}, {9, "integers"}, {13, "bfloat16"}};
  const auto add = [&](std::string_view name, std::vector<Since> versions, Samples samples) {
    registry.add({.name = name,
                  .since = std::move(versions),
                  .inputs = {{"A"}, {"B"}},
                  .outputs = {{"C"}},
                  .infer = infer_broadcast_bool,
                  .backward = kTruthValue,
                  .samples = samples});
  };
  add("Equal",
      {{7}, {11, "floats"}, {13, "bfloat16"}, {19, "strings, which Graft does not compare"}},
      equal_samples);
  add("Less", since, comparison_samples);
  add("Greater", since, comparison_samples);
  add("LessOrEqual", {{12}, {16, "bfloat16"}}, comparison_samples);
  add("GreaterOrEqual", {{12}, {16, "bfloat16"}}, comparison_samples);
}

void register_logical(OpRegistry& registry) {
  for (const std::string_view name : {"And", "Or", "Xor"}) {
    registry.add({.name = name,
                  .since = {{7}},
                  .inputs = {{"A"}, {"B"}},
                  .outputs = {{"C"}},
                  .infer = infer_logical,
                  .aliases = in_place_of_either(),
                  .backward = kTruthValue,
                  .samples = logical_samples});
  }
  registry.add({.name = "Not",
                .since = {{1}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .infer = infer_logical,
                .aliases = {{0, 0, AliasKind::in_place}},
                .backward = kTruthValue,
                .samples = [] {
                  return unary_samples(0.0, 2.0, false, {}, DType::boolean) +
                         std::vector{value_sample("table", {0, 1}, {}, DType::boolean)};
                }});
}

void register_tests(OpRegistry& registry) {
  const double inf = HUGE_VAL;
  static const std::vector<double> kSpecial{-inf, -1e30, -0.0, 0.0, 3.0, inf, NAN};
  registry.add({.name = "IsNaN",
                .since = {{9}, {13, "bfloat16"}, {20}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .infer = infer_broadcast_bool,
                .backward = kTruthValue,
                .samples = [] {
                  return unary_samples(-1.0, 1.0) + std::vector{value_sample("special", kSpecial)};
                }});
  registry.add({.name = "IsInf",
                .since = {{10}, {20, "float16, bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"detect_negative", AttributeType::integer},
                               {"detect_positive", AttributeType::integer}},
                .infer = infer_broadcast_bool,
                .backward = kTruthValue,
                .samples = [] {
                  return unary_samples(-1.0, 1.0) +
                         std::vector{
                             value_sample("special", kSpecial),
                             value_sample("positive", kSpecial, {{"detect_negative", 0}}),
                             value_sample("negative", kSpecial, {{"detect_positive", 0}}),
                             value_sample("none", kSpecial,
                                          {{"detect_negative", 0}, {"detect_positive", 0}})};
                }});
}

}  // namespace

/// Comparisons, logic, tests for NaN and infinity, and Where.
void register_logic(OpRegistry& registry) {
  register_comparisons(registry);
  register_logical(registry);
  register_tests(registry);
  registry.add({.name = "Where",
                .since = {{9}, {16, "bfloat16"}},
                .inputs = {{"condition"}, {"X"}, {"Y"}},
                .outputs = {{"output"}},
                .infer = infer_where,
                .aliases = {{0, 1, AliasKind::in_place}, {0, 2, AliasKind::in_place}},
                .backward = where_rule,
                .samples = where_samples});
}

}  // namespace graft
