#pragma once

#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/graph/graph.h"

namespace graft::passes {

/// Element-wise nodes, in the order in which they run.
using Links = std::vector<Node*>;

bool contains(const Links& links, const Node* node);

/// Whether a chain on the device may hold the node.
bool is_link(const Node& node, Device& device);

/// What the links read from outside, each value once; constants of one element are left out: they
/// become part of the body.
std::vector<Value*> operands_of(const Links& links);

/// What others read of the links.
std::vector<Value*> results_of(const Links& links);

/// Whether one chain on the device holds that many links, inputs and results, and is worth it.
bool fits_chain(const Links& links, const std::vector<Value*>& inputs,
                const std::vector<Value*>& results, const Device& device);

/// A node that is to take the place of links.
struct NewChain {
  std::string_view op;  ///< of the internal domain
  Links links;
  std::vector<Value*> inputs;
  std::vector<Value*> results;   ///< of the links
  std::vector<Value*> replaced;  ///< whose names and readers the outputs get: one a result
};

/// Adds the node before `before`. What it replaces stays, with readers among the links at most.
Node* add_chain(Graph& graph, const NewChain& chain, Node* before);

}  // namespace graft::passes
