#pragma once

#include "core/graph/graph.h"

// Which models the pipeline takes, and what can be said of their results.
namespace graft::fuzz {

/// Whether its numbers ask for little: a model may be as slow as its author likes, but a fuzzer
/// shall not wait for it.
bool is_small(const Graph& graph);

/// Whether results that differ by rounding alone stay near each other: no rounding to integers, no
/// comparison, no choice by value, no random number.
bool rounds_only(const Graph& graph);

/// The same of gradients: no op has a kink, where another of two slopes may be taken.
bool is_smooth(const Graph& graph);

}  // namespace graft::fuzz
