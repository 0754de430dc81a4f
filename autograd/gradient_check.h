#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace graft::autograd {

struct GradientCheckOptions {
  /// How far an element is moved to each side for the central difference.
  double epsilon = 1e-5;
  double relative = 1e-5;
  double absolute = 1e-7;
  /// Random directions tried when the Jacobian is large.
  int directions = 3;
  /// Up to this many elements of checked inputs, each is moved on its own.
  std::int64_t full_jacobian_elements = 64;
  std::uint64_t seed = 1;
};

/// Compares the gradients that `backward` gives with central differences, in f64, for the weighted
/// sum of all float outputs of `graph` (random weights). `graph`: f64 inputs with known shapes;
/// `inputs`: one tensor a required input; `checked`: which inputs to differentiate.
/// Returns what differs, one line each; empty when all agree.
std::vector<std::string> check_gradients(const Graph& graph, const std::vector<Tensor>& inputs,
                                         const std::vector<int>& checked,
                                         const GradientCheckOptions& options = {});

}  // namespace graft::autograd
