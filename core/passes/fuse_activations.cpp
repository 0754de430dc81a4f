// A clamp behind a training normalization, forward and backward. The match starts at the gradient
// of the normalization, which sees both ways: the normalization itself, and what the clamp's
// gradient reads. Both nodes stay and take the clamp as attributes.
#include <limits>

#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace activation_fusion {

const Pattern x = any();
const Pattern dz = any();
const Pattern norm = internal_op("BatchNormTraining", {x},
                                 [](const Node& node) { return !node.attributes.has("lower"); });
const Pattern relu = op("Relu", {once(norm)});

Pattern norm_grad(const Pattern& dy) {
  return internal_op("BatchNormGrad", {x, once(dy)});
}

/// The Clip that reads what the ClipGrad of the match reads, and nothing else does.
Node* clip_of(const Match& m) {
  const Value& y = *m[norm].value();
  if (y.uses().size() != 2 || y.is_graph_output()) return nullptr;
  for (const Use& use : y.uses()) {
    if (use.index == 0 && use.node->is("Clip")) return use.node;
  }
  return nullptr;
}

/// What the constant bounds of a Clip are as attributes; nothing if those cannot hold them.
std::optional<Attributes> clamp_of(const Node& clip) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto bound = [&](int index, float none) {
    const Value* const value = clip.input(index);
    return value == nullptr ? none : scalar_of(value);
  };
  const std::optional<double> lower = bound(1, -kMost);
  const std::optional<double> upper = bound(2, kMost);
  const DType dtype = clip.output()->dtype();
  if (!lower || !upper || !fits_attribute(*lower, dtype) || !fits_attribute(*upper, dtype)) {
    return std::nullopt;
  }
  return Attributes{{"lower", *lower}, {"upper", *upper}};
}

Results clamp(const Match& m, const Node& activation, const Attributes& attributes) {
  Node& forward = m.node(norm);
  Node& backward = m.root();
  for (const Attribute& attribute : attributes) {
    forward.attributes.set(attribute);
    backward.attributes.set(attribute);
  }
  backward.set_input(1, m[dz].value());
  backward.set_input(5, forward.input(2));
  m.graph().replace_all_uses(activation.output(), forward.output());
  return {};
}

/// z = f(norm(x)), and the gradients of both.
Results sample(SampleNet& net, const Shape& shape, std::string_view name,
               const std::vector<double>& bounds) {
  const Expr in = net.input(shape);
  const Shape channels{shape[1]};
  std::vector<Expr> inputs{in};
  for (int i = 0; i < 4; ++i) inputs.push_back(net.variable(channels));
  const std::vector<Expr> made = call_multi("BatchNormTraining", kInternalDomain, inputs, 5);
  std::vector<Expr> clip{made[0]};
  for (const double bound : bounds) clip.push_back(net.number(bound));
  const Expr z = call(name, clip);
  std::vector<Expr> grad_inputs = clip;
  if (bounds.empty()) grad_inputs.front() = z;
  grad_inputs.insert(grad_inputs.begin() + 1, net.input(shape));
  const Expr dy = call_internal(text(name, "Grad"), grad_inputs);
  std::vector<Expr> results =
      call_multi("BatchNormGrad", kInternalDomain, {in, dy, inputs[1], made[1], made[2]}, 3);
  results.insert(results.end(), {z, made[3], made[4]});
  return results;
}

const std::vector<Rewrite> kRewrites{
    {.name = "relu_of_norm",
     .match = norm_grad(internal_op("ReluGrad", {relu, dz})),
     .to =
         [](const Match& m) {
           return clamp(m, m.node(relu), {{"lower", 0.0F}, {"strict", 1}});
         },
     .samples = {{"images",
                  [](SampleNet& net) {
                    return sample(net, {2, 3, 4, 4}, "Relu", {});
                  }},
                 {"rows",
                  [](SampleNet& net) {
                    return sample(net, {6, 3}, "Relu", {});
                  }}}},
    {.name = "clip_of_norm",
     .match = norm_grad(internal_op("ClipGrad", {norm, dz})),
     .where = [](const Match& m) { return clip_of(m) != nullptr && clamp_of(*clip_of(m)); },
     .to = [](const Match& m) { return clamp(m, *clip_of(m), clamp_of(*clip_of(m)).value()); },
     .samples = {{"both_bounds",
                  [](SampleNet& net) {
                    return sample(net, {2, 3, 4, 4}, "Clip", {0.0, 0.75});
                  }},
                 {"one_bound",
                  [](SampleNet& net) {
                    return sample(net, {6, 3}, "Clip", {-0.5});
                  }}}},
};

}  // namespace activation_fusion
}  // namespace

std::span<const Rewrite> fuse_activations_rewrites() {
  return activation_fusion::kRewrites;
}

bool fuse_activations(Graph& graph) {
  return rewrite(graph, activation_fusion::kRewrites);
}

}  // namespace graft::passes
