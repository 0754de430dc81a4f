// A Relu or a Clip behind a convolution goes over memory by itself: up to a sixth of a small net's
// time. A convolution can clamp what it sums while that is in registers.
#include <cmath>

#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace convolution_clamping {

const Pattern x = any();
const Pattern weight = any();
const Pattern bias = any();
const Pattern convolution = op("Conv", {x, weight, or_none(bias)});

bool is_computed_exactly(const Match& m) {
  const DType dtype = m.result()->dtype();
  return dtype == DType::f32 || dtype == DType::f64;
}

/// Whether operand `index` of a Clip is left out or a number that an attribute holds.
bool is_bound(const Match& m, int index) {
  const Value* const value = m.root().input(index);
  if (value == nullptr) return true;
  const std::optional<double> number = scalar_of(value);
  return number && !std::isnan(*number) && fits_attribute(*number, m.result()->dtype());
}

Results clamped(const Match& m, const Attributes& bounds) {
  Attributes attributes = m.node(convolution).attributes;
  for (const Attribute& bound : bounds) attributes.set(bound);
  std::vector<Expr> inputs{m[x], m[weight]};
  if (m.has(bias)) inputs.push_back(m[bias]);
  return call_internal("ConvClamp", inputs, std::move(attributes));
}

Results clipped(const Match& m) {
  Attributes bounds;
  const Node& clip = m.root();
  if (clip.input(1) != nullptr) bounds.set({"lower", *scalar_of(clip.input(1))});
  if (clip.input(2) != nullptr) bounds.set({"upper", *scalar_of(clip.input(2))});
  return clamped(m, bounds);
}

Expr sample_conv(SampleNet& net) {
  return call("Conv", {net.input({2, 3, 5, 4}), net.input({4, 3, 2, 2}), net.input({4})});
}

const std::vector<Rewrite> kRewrites{
    {.name = "relu_of_convolution",
     .match = op("Relu", {once(convolution)}),
     .where = is_computed_exactly,
     .to =
         [](const Match& m) {
           return clamped(m, {{"lower", 0.0F}});
         },
     .samples = {{"with_bias", [](SampleNet& net) { return call("Relu", {sample_conv(net)}); }},
                 {"in_groups",
                  [](SampleNet& net) {
                    const Expr y =
                        call("Conv", {net.input({2, 4, 6}), net.input({6, 2, 3})}, {{"group", 2}});
                    return call("Relu", {y});
                  }}}},
    {.name = "clip_of_convolution",
     .match = op("Clip", {once(convolution)}),
     .where =
         [](const Match& m) { return is_computed_exactly(m) && is_bound(m, 1) && is_bound(m, 2); },
     .to = clipped,
     .samples = {{"both_bounds",
                  [](SampleNet& net) {
                    return call("Clip", {sample_conv(net), net.number(0.0), net.number(0.75)});
                  }},
                 {"upper_bound",
                  [](SampleNet& net) {
                    return call("Clip", {sample_conv(net), Expr(), net.number(0.5)});
                  }}}},
};

}  // namespace convolution_clamping
}  // namespace

std::span<const Rewrite> clamp_convolutions_rewrites() {
  return convolution_clamping::kRewrites;
}

bool clamp_convolutions(Graph& graph) {
  return rewrite(graph, convolution_clamping::kRewrites);
}

}  // namespace graft::passes
