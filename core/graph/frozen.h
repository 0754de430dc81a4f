#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.h"

/// What a model keeps from training by default, in its file too: names in its metadata, under
/// "graft.frozen", one a line. They get the role of a buffer. Whoever trains by name is not asked.
namespace graft::edit {

/// The names that the model's metadata list, whether it has such values or not.
std::vector<std::string> frozen_names(const Model& model);

/// Makes these the names, in the metadata alone: for edits that rename values.
void set_frozen_names(Model& model, const std::vector<std::string>& names);

/// Freezes those weights (float initializers, and Constants and Identities of initializers) that
/// `is_wanted` chooses. A BatchNormalization whose mean or variance is frozen keeps its statistics,
/// even where its scale and bias train. Returns how many were not frozen before.
std::size_t freeze(Model& model, const std::function<bool(const Value&)>& is_wanted);

/// The same for those whose whole name matches a regular expression (RE2). Throws Error{argument},
/// with names, if it matches no weight; what Regex throws.
std::size_t freeze(Model& model, std::string_view pattern);

/// Lets what was frozen train again, by the defaults, if its whole name matches; returns how many
/// there were. What the file's exporter calls a buffer is not among them. Throws as `freeze` does.
std::size_t unfreeze(Model& model, std::string_view pattern);

/// The same for those that `is_wanted` chooses; none is no error.
std::size_t unfreeze(Model& model, const std::function<bool(const Value&)>& is_wanted);

/// Takes names that no value has any more from the list; for edits that remove values.
void forget_frozen(Model& model);

/// Gives the values that the metadata list their roles: for readers of files.
void give_frozen_roles(Model& model);

}  // namespace graft::edit
