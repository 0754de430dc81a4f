#pragma once

#include <cstddef>
#include <string_view>

namespace graft {

class Node;

/// What one step of a plan is and what it cost while profiling was on.
struct StepProfile {
  const Node* node;         ///< lives as long as the plan
  std::string_view kernel;  ///< "onednn", "plain", ...
  std::size_t bytes;        ///< of its inputs and outputs
  double seconds;           ///< all measured runs together
};

/// The bytes of a node's inputs and outputs.
std::size_t operand_bytes(const Node& node);

}  // namespace graft
