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
/// "HxW": how large its images were made before that; "none" or no note: left as they were.
inline constexpr std::string_view kResizeNote = "graft.resize";
/// The classes' names, a JSON list.
inline constexpr std::string_view kClassesNote = "graft.class_names";
/// "classification", "regression", ...
inline constexpr std::string_view kTaskNote = "graft.task";
/// What trained it, for people.
inline constexpr std::string_view kTrainedNote = "graft.trained_by";
/// The loss as --loss takes it, and the output that it judged.
inline constexpr std::string_view kLossNote = "graft.loss";
inline constexpr std::string_view kOutputNote = "graft.output";
/// "1x28x28": a sample of the first input; of images channels, height, width.
inline constexpr std::string_view kSampleNote = "graft.sample";
/// The classes' names as Ultralytics writes them: {0: 'person', 1: 'bicycle'}.
inline constexpr std::string_view kNamesNote = "names";

/// What the file says under the key; empty where it says nothing.
std::string note_of(const Model& model, std::string_view key);
void set_note(Model& model, std::string_view key, const std::string& text);

/// Notes how the model is being trained. Says on stderr where the data name classes otherwise.
void leave_notes(const TrainArguments& arguments, const TrainOptions& options,
                 const DatasetInfo& data, Model& model);

/// Takes from the file what the command leaves open of how images are resized and inputs are
/// normalized. Says on stderr what it takes, and where file and command differ.
void complete_data(const Model& model, DataArguments& arguments);

/// Names of the classes, from graft.class_names or else from names; empty where the file has none,
/// or none that can be read.
std::vector<std::string> class_names_of(const Model& model);

/// The output that training judged, where the model still has it; else empty.
std::string noted_output(const Model& model);

/// Takes the loss from the file if the command leaves it open. Says on stderr that it takes another
/// than the data would choose, or that file and command differ.
void complete_loss(const Model& model, const Dataset& dataset, LossArguments& arguments);

/// Warns on stderr of data whose classes have other names than the file's, or whose samples have
/// another shape than those it was trained on.
void say_conflicts(const Model& model, const DatasetInfo& data);

}  // namespace graft::cli
