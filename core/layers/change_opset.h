#pragma once

#include <cstdint>

#include "core/graph/model.h"

namespace graft::edit {

/// The oldest opset to which models are brought down.
inline constexpr std::int64_t kOldestTarget = 13;

/// Writes the nodes, those of bodies too, in the forms of another version of the standard op set,
/// older or newer, so that runtimes of that time run the model; it computes the same. Constant
/// nodes become initializers, calls of functions their bodies. An op, or a setting, that the
/// version does not have is written in others where `older_forms.h` knows how, or by the op's
/// decomposition where all shapes are known. Names of outputs stay. Versions of other domains stay.
///
/// Throws Error{argument} if the version is below 13 or above the newest; Error{unsupported},
/// naming the node and what the version lacks, for what cannot be written, and naming the ops for
/// ops that Graft does not know; what inference throws. A call that throws leaves the model as it
/// was.
void change_opset(Model& model, std::int64_t version);

}  // namespace graft::edit
