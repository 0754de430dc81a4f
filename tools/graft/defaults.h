#pragma once

#include <string>

#include "core/graph/model.h"
#include "tools/graft/train_arguments.h"

namespace graft::cli {

/// Whether a net was written by `graft new` and has not been trained since.
bool is_fresh(const Model& model);

/// Sets optimizer, rate and warm-up where the command leaves them open, by what the file is: a
/// fresh net gets what such nets learn well with, SGD or, with recurrent layers, attention,
/// LayerNormalization or RMSNormalization, AdamW; anything else may be trained already, and what
/// was learned must not be lost at once: AdamW with rate 1e-4 and a warm-up, or 1e-3 for SGD where
/// the command names that. Returns why, for people.
std::string choose_defaults(const Model& model, std::int64_t updates, TrainArguments& arguments);

}  // namespace graft::cli
