#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.h"
#include "tools/graft/train_arguments.h"

// What training leaves in the model's file, as ONNX metadata, so that the file tells how to use it.
namespace graft::cli {

/// "MEAN[,...]:DEVIATION[,...]" or "none": what its inputs were normalized by.
inline constexpr std::string_view kNormalizeNote = "graft.normalize";
/// The classes' names, a JSON list.
inline constexpr std::string_view kClassesNote = "graft.class_names";
/// "classification", "regression", ...
inline constexpr std::string_view kTaskNote = "graft.task";
/// What trained it, for people.
inline constexpr std::string_view kTrainedNote = "graft.trained_by";

/// What the file says under the key; empty where it says nothing.
std::string note_of(const Model& model, std::string_view key);
void set_note(Model& model, std::string_view key, const std::string& text);

/// Notes how the model is being trained.
void leave_notes(const TrainArguments& arguments, const TrainOptions& options,
                 const DatasetInfo& data, Model& model);

/// What to normalize inputs by, as --normalize takes it: what the command says, and else the file.
/// Says on stderr what it takes from the file, or that the two differ.
std::string normalization_for(const Model& model, const std::string& said, const std::string& data);

}  // namespace graft::cli
