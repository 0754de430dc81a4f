// Activations that exporters spell out in simpler ops.
#include <cmath>
#include <numbers>

#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace activation_naming {

const double kRoot2OverPi = std::sqrt(2 / std::numbers::pi);

const Pattern x = any();
const Pattern alpha = any_number();
const Pattern erf = once(op("Erf", {x / std::numbers::sqrt2}));
const Pattern tanh = once(op("Tanh", {(x + cube(x) * 0.044715) * kRoot2OverPi}));

bool has_shape_of_x(const Match& m) {
  return have_one_shape(m[x].value(), m.result());
}

Expr sample_erf(const Expr& of) {
  return call("Erf", {of});
}

const std::vector<Rewrite> kRewrites{
    {.name = "gelu",
     .match = x * once(1.0 + erf) * 0.5,
     .where = has_shape_of_x,
     .to = [](const Match& m) { return call("Gelu", {m[x]}); },
     .samples = {{"torch",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5});
                    return in * (sample_erf(in / std::numbers::sqrt2) + 1.0) * 0.5;
                  }},
                 {"half_first",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5});
                    return (in * 0.5) * (sample_erf(in * (1 / std::numbers::sqrt2)) + 1.0);
                  }},
                 {"half_of_gate",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5});
                    return (sample_erf(in / std::numbers::sqrt2) + 1.0) * 0.5 * in;
                  }},
                 {"of_a_scaled_value",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5}) * 3.0;
                    return in * ((sample_erf(in / std::numbers::sqrt2) + 1.0) / 2.0);
                  }}}},
    {.name = "tanh_gelu",
     .match = x * once(1.0 + tanh) * 0.5,
     .where = has_shape_of_x,
     .to =
         [](const Match& m) {
           return call("Gelu", {m[x]}, {{"approximate", "tanh"}});
         },
     .samples = {{"power",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5});
                    const Expr inner = (in + pow(in, 3.0) * 0.044715) * kRoot2OverPi;
                    return (in * 0.5) * (graft::tanh(inner) + 1.0);
                  }},
                 {"product",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5});
                    const Expr inner = (in + in * (in * in) * 0.044715) * kRoot2OverPi;
                    return in * (graft::tanh(inner) + 1.0) * 0.5;
                  }}}},
    {.name = "swish",
     .match = x * once(sigmoid(scaled(x, alpha))),
     .where =
         [](const Match& m) {
           return has_shape_of_x(m) && fits_attribute(m.number(alpha), m[x].dtype());
         },
     .to =
         [](const Match& m) {
           return call("Swish", {m[x]}, {{"alpha", static_cast<float>(m.number(alpha))}});
         },
     .samples = {{"silu",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5});
                    return in * sigmoid(in);
                  }},
                 {"quick_gelu",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5});
                    return in * sigmoid(in * 1.702);
                  }},
                 {"divided",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5});
                    return in * sigmoid(in / 4.0);
                  }},
                 {"of_a_scaled_value",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 5}) * 2.0;
                    return in * sigmoid(in * 0.5);
                  }}}},
};

}  // namespace activation_naming
}  // namespace

std::span<const Rewrite> name_activations_rewrites() {
  return activation_naming::kRewrites;
}

bool name_activations(Graph& graph) {
  return rewrite(graph, activation_naming::kRewrites);
}

}  // namespace graft::passes
