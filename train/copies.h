#pragma once

#include <string>
#include <vector>

#include "core/graph/model.h"
#include "train/tied.h"

namespace graft {

/// Matrices among `values` that hold the same elements, or one the other's transpose: each list is
/// one parameter that was written several times. Small ones are left out, which are equal by
/// chance. A name that a program gave leads.
std::vector<std::vector<std::string>> find_copies(const std::vector<const Value*>& values);

/// Makes what find_copies finds among the initializers one initializer each, in the model itself: a
/// transposed copy becomes a Transpose. They train as one from then on, in the file too. Returns
/// one tie a copy that went.
std::vector<Tie> tie_copies(Model& model);

}  // namespace graft
