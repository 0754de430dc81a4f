#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace graft {

/// Tensors that live from step to step beside the parameters (optimizer state, gradient buffers,
/// masters), shared by the plans of all batch shapes. By name.
using StateTensors = std::map<std::string, Tensor>;

/// f16 and bf16.
inline bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

/// What trains in f32 in place of a parameter or a running statistic of 16 bits: an update is
/// smaller than what those can tell apart. Source: Micikevicius et al., arXiv 1710.03740, 3.1.
struct Master {
  std::string parameter;  ///< the initializer of 16 bits
  Tensor content;         ///< its elements
  Value* value;           ///< the f32 variable that is read instead
};

/// If a variable has 16 bits, lets the graph compute in f32 (inputs and constants are cast), with
/// a master for each such variable. Masters that `state` holds are taken from there; new ones start
/// as the parameter is. Without such a variable, nothing changes. The graph holds no bodies.
std::vector<Master> add_masters(Graph& graph, StateTensors& state);

/// Behind the updates: adds the nodes that write what masters have become back to the parameters.
void write_back(Graph& graph, const std::vector<Master>& masters);

}  // namespace graft
