#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <unordered_map>
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

/// Adds chains to a graph. Those of one form share a body, which has the names of the first: a deep
/// model has thousands of chains, of a few forms.
class ChainMaker {
 public:
  explicit ChainMaker(Graph& graph) : graph_(graph) {}

  /// Adds the node before `before`. What it replaces stays, with readers among the links at most.
  Node* add(const NewChain& chain, Node* before);

 private:
  std::shared_ptr<Graph> body_of(const NewChain& chain);

  Graph& graph_;
  std::unordered_multimap<std::size_t, std::shared_ptr<Graph>> bodies_;  // by a hash of their ops
};

}  // namespace graft::passes
