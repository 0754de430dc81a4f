#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/graph/model.h"
#include "tests/fuzz/models/random.h"

// Mutants of models, made node by node as the rows of ops say, so that most are models again.
namespace graft::fuzz {

/// The model changed in one to three places: attributes, dims, element types, wiring, nodes that
/// come or go. Bytes that are no model give a new one of a node. Empty if what came out cannot be
/// written. The same bytes and seed give the same mutant.
std::string mutate_model(std::string_view bytes, std::uint64_t seed);

/// Adds a node by a sample of a row, its inputs connected to what is there.
void add_random_node(Model& model, Random& random);
/// Changes an attribute that a node has or may have.
void change_attribute(Graph& graph, Random& random);

}  // namespace graft::fuzz
