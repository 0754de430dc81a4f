#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "core/graph/graph.h"

namespace graft::passes {

/// Whether a second run of the node on the same inputs gives the same bits and changes nothing:
/// no stream of random numbers (in bodies neither) and no variable that it must update. Where its
/// row lets it leave out the variables that it updates, the second run does.
bool can_repeat(const Node& node);

/// A node that computes once more what `original` does.
struct Repeat {
  Node* node;
  Node* original;
};

/// Lets the nodes behind `boundary` (the loss: so, the backward part) compute the values of
/// `dropped` again, which nodes before it made, instead of keeping them: they read the outputs of
/// copies, each of which runs right before the first that wants it. Views of such values are made
/// again too. Everything else is kept: there, chains of copies start. The producers of `dropped`
/// must satisfy can_repeat. A value of `apart` is made anew for each reader, as long as variables
/// that it is made of are not updated: it need not live from one to the next. Returns the copies,
/// in order. Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
std::vector<Repeat> recompute(Graph& graph, const Node* boundary,
                              const std::unordered_set<const Value*>& dropped,
                              const std::unordered_set<const Value*>& apart = {});

/// Takes the copies out again.
void remove_repeats(Graph& graph, std::span<const Repeat> repeats);

}  // namespace graft::passes
