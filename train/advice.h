#pragma once

#include <string>
#include <vector>

#include "core/graph/model.h"

namespace graft {

/// Something in a file that makes training slower, worse or impossible, and what repairs it.
struct Advice {
  std::string found;
  /// Arguments of the command line: "edit MODEL --batch any --out OUT"; empty where nothing needs
  /// to be done.
  std::string remedy;
};

/// What is found in a model as its file has it: an end in probabilities, a fixed batch, parameters
/// of 16 bits, quantized weights, weights behind conditions, one parameter written twice. `newest`:
/// the same in its newest form; `trained`: those of its initializers that would train.
std::vector<Advice> advise(const Model& file, const Graph& newest,
                           const std::vector<const Value*>& trained);

}  // namespace graft
