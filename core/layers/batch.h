#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/model.h"

namespace graft::edit {

/// Sets the batch as `set_batch` does, and follows it through the model: exporters bake the batch
/// that they traced with into constants. Where all shapes of the old batch are known, each value's
/// batch is the axis that grows when inference sees a larger one; then these get the new batch:
///
///   - the target of a Reshape, wherever the batch stands in it, be it joined with another axis;
///   - the shape of an Expand and the sizes of a Resize;
///   - an operand of a Concat that is the same for all samples, as a class token;
///   - initial states of LSTM, GRU and RNN: zeros are left out, others repeated.
///
/// A file may say that its batch is open, and yet hold the one of the export: then this is the
/// number in it that fits. Elsewhere only what `set_batch` finds. Throws as it does, and
/// Error{unsupported}, naming the node, where the batch is part of the model in another way; the
/// model is then as it was.
void change_batch(Model& model, std::optional<std::int64_t> batch);

}  // namespace graft::edit
