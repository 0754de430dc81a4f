#pragma once

#include <string>
#include <vector>

#include "core/graph/model.h"

namespace graft::edit {

/// Stores weights that a QuantizeLinear reads, as training with quantization in mind leaves them,
/// as the integers that it makes of them: the node goes, the DequantizeLinear behind it stays,
/// outputs stay the same bits. Such a weight trains no more. Nodes and initializers that nothing
/// reads go. Returns the names of the integers.
/// Throws what inference throws.
std::vector<std::string> store_quantized(Model& model);

}  // namespace graft::edit
