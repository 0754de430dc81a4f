#include "core/ops/kernels/elementwise_samples.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using Gradients = std::vector<Expr>;

Gradients variadic_sum_rule(const Gradient& g) {
  return Gradients(static_cast<std::size_t>(g.input_count()), g.dy());
}

Gradients variadic_mean_rule(const Gradient& g) {
  return Gradients(static_cast<std::size_t>(g.input_count()),
                   g.dy() / static_cast<double>(g.input_count()));
}

/// The inputs that attain the result share its gradient evenly, as in torch.maximum and amax.
Gradients extremum_rule(const Gradient& g) {
  if (g.input_count() == 1) return {g.dy()};
  Gradients gradients;
  Expr count;
  for (int i = 0; i < g.input_count(); ++i) {
    const Expr attains = cast(equal(g.x(i), g.y()), g.dy().dtype());
    gradients.push_back(attains);
    count = count ? count + attains : attains;
  }
  // Chosen, not multiplied: 0 times the infinite slope of what follows (Sqrt at 0) is NaN.
  const Expr share = g.dy() / count;
  const Expr none = constant_like(share, 0.0);
  for (int i = 0; i < g.input_count(); ++i) {
    gradients[static_cast<std::size_t>(i)] = where(equal(g.x(i), g.y()), share, none);
  }
  return gradients;
}

void infer_variadic(InferContext& context) {
  context.input(0);  // at least one, and none left out
  for (int i = 1; i < context.input_count(); ++i) context.input(i);
  infer_broadcast(context);
}

std::vector<Sample> variadic_samples() {
  const auto input = [](Shape shape) {
    return SampleInput{.shape = std::move(shape), .low = -2.0, .high = 2.0};
  };
  return binary_samples(input({}), input({})) +
         std::vector<Sample>{
             {"one_input", {input({2, 3})}},
             {"three_inputs", {input({2, 3}), input({3}), input({2, 1})}},
             {"grows_late", {input({}), input({3}), input({2, 1}), input({4, 2, 3})}},
             {"all_but_one",
              {input({2, 3}), input({3}), input({2, 1}), input({}), input({1, 3}), input({1, 1})}},
             {"six_inputs",
              {input({5}), input({5}), input({5}), input({5}), input({5}), input({5})}},
         };
}

std::vector<Sample> extremum_samples() {
  const SampleInput i64{.shape = {3}, .values = {-5, 0, 1099511627776.0}, .dtype = DType::i64};
  const SampleInput u8{.shape = {2, 1}, .values = {7, 255}, .dtype = DType::u8};
  std::vector<Sample> samples = variadic_samples();
  for (Sample& sample : samples) {
    if (sample.name.starts_with("many")) sample.no_gradient_check = kKinks;
  }
  return std::move(samples) + std::vector<Sample>{{"i64", {i64, i64}}, {"u8", {u8, u8, u8}}};
}

OpDef variadic(std::string_view name, std::string_view output, std::vector<Since> since, Rule rule,
               Samples samples) {
  return {.name = name,
          .since = std::move(since),
          .inputs = {{"data_0", Arity::variadic}},
          .outputs = {{output}},
          .infer = infer_variadic,
          .aliases = {{0, 0, AliasKind::in_place}, {0, 1, AliasKind::in_place}},
          .layout = kElementwise,
          .backward = rule,
          .samples = samples};
}

}  // namespace

/// Max, Min, Sum, Mean of any number of inputs.
void register_variadic(OpRegistry& registry) {
  const std::vector<Since> since_extremum{
      {6}, {8, "broadcasting"}, {12, "integers"}, {13, "bfloat16"}};
  const std::vector<Since> since_sum{{6}, {8, "broadcasting"}, {13, "bfloat16"}};
  registry.add(variadic("Max", "max", since_extremum, extremum_rule, extremum_samples));
  registry.add(variadic("Min", "min", since_extremum, extremum_rule, extremum_samples));
  registry.add(variadic("Sum", "sum", since_sum, variadic_sum_rule, variadic_samples));
  registry.add(variadic("Mean", "mean", since_sum, variadic_mean_rule, variadic_samples));
}

}  // namespace graft
