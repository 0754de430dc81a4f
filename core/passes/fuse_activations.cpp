#include <limits>

#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

/// A clamp behind a normalization, forward and backward.
struct Match {
  Node* norm;
  Node* activation;
  Node* activation_grad;
  Node* norm_grad;
  Attributes clamp;
};

/// y -> Relu -> z, and ReluGrad(z, dz).
bool match_relu(const Value* y, Match& match) {
  match.activation = only_reader(y);
  if (match.activation == nullptr || !match.activation->is("Relu")) return false;
  for (const Use& use : match.activation->output(0)->uses()) {
    if (use.node->is("ReluGrad", kInternalDomain) && use.index == 0) {
      match.activation_grad = use.node;
    }
  }
  match.clamp = {{"lower", AttributeValue(0.0F)}, {"strict", 1}};
  return match.activation_grad != nullptr;
}

/// y -> Clip -> z, and ClipGrad(y, dz).
bool match_clip(const Value* y, Match& match) {
  if (y->uses().size() != 2 || y->is_graph_output()) return false;
  for (const Use& use : y->uses()) {
    if (use.index != 0) return false;
    if (use.node->is("Clip")) match.activation = use.node;
    if (use.node->is("ClipGrad", kInternalDomain)) match.activation_grad = use.node;
  }
  if (match.activation == nullptr || match.activation_grad == nullptr) return false;
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto bound = [&](int index, float none) {
    const Value* const value = match.activation->input(index);
    return value == nullptr ? none : scalar_of(value);
  };
  const std::optional<double> lower = bound(1, -kMost);
  const std::optional<double> upper = bound(2, kMost);
  if (!lower || !upper) return false;
  const DType dtype = match.activation->output()->dtype();
  if (!fits_attribute(*lower, dtype) || !fits_attribute(*upper, dtype)) return false;
  match.clamp = {{"lower", AttributeValue(static_cast<float>(*lower))},
                 {"upper", AttributeValue(static_cast<float>(*upper))}};
  return true;
}

std::optional<Match> match(Node& norm) {
  if (!norm.is("BatchNormTraining", kInternalDomain) || norm.attributes.has("lower")) {
    return std::nullopt;
  }
  Match found{.norm = &norm};
  if (!match_relu(norm.output(0), found)) {
    found = {.norm = &norm};
    if (!match_clip(norm.output(0), found)) return std::nullopt;
  }
  found.norm_grad = only_reader(found.activation_grad->output(0));
  const bool pairs = found.norm_grad != nullptr &&
                     found.norm_grad->is("BatchNormGrad", kInternalDomain) &&
                     found.norm_grad->input(0) == norm.input(0) &&
                     found.norm_grad->input(1) == found.activation_grad->output(0);
  if (!pairs) return std::nullopt;
  return found;
}

void fuse(Graph& graph, const Match& match) {
  for (const Attribute& attribute : match.clamp) {
    match.norm->attributes.set(attribute);
    match.norm_grad->attributes.set(attribute);
  }
  match.norm_grad->set_input(1, match.activation_grad->input(1));
  match.norm_grad->set_input(5, match.norm->input(2));
  graph.remove(match.activation_grad);
  graph.replace_all_uses(match.activation->output(0), match.norm->output(0));
  graph.remove(match.activation);
}

}  // namespace

bool fuse_activations(Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (const std::optional<Match> found = match(*node)) {
      fuse(graph, *found);
      changed = true;
    }
  }
  verify_in_debug(graph);
  return changed;
}

}  // namespace graft::passes
