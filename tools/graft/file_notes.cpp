#include "tools/graft/file_notes.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graft/version.h"
#include "tools/graft/arguments.h"
#include "tools/graft/class_names.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/run_settings.h"
#include "tools/graft/verbosity.h"

namespace graft::cli {
namespace {

std::string list_of(const std::vector<float>& numbers) {
  std::string list;
  for (const float number : numbers) list += (list.empty() ? "" : ",") + shortest(number);
  return list;
}

/// "data" as the numbers that it stands for.
std::string in_numbers(const std::string& said, const std::string& data) {
  const std::vector<Transform> transforms = normalization({.spec = data, .normalize = said});
  if (transforms.empty()) return "none";
  const auto* const by = transforms.front().target<Normalize>();
  return list_of(by->mean) + ":" + list_of(by->deviation);
}

std::string sample_of(const DatasetInfo& data) {
  std::string dims;
  for (const std::int64_t dim : data.inputs.front().shape) {
    dims += (dims.empty() ? "" : "x") + std::to_string(dim);
  }
  return dims;
}

/// "csv:iris.csv" of "csv:/home/me/iris.csv". A run that goes on knows its data by another path,
/// and has to end with the same bits.
std::string without_folder(const std::string& spec) {
  const std::string whole = absolute_spec(spec);
  const std::size_t colon = std::min(whole.find(':'), whole.size());
  const std::filesystem::path place = whole.substr(std::min(colon + 1, whole.size()));
  return place.empty() ? spec : text(whole.substr(0, colon), ':', place.filename().string());
}

/// As --loss takes it, with what --label-smoothing says.
std::string spec_of(const LossArguments& arguments, const Loss& loss) {
  std::string spec = arguments.name == "auto" ? loss.name : arguments.name;
  if (arguments.label_smoothing != 0.0F && spec.find(":label_smoothing") == spec.npos) {
    spec += ":label_smoothing=" + shortest(arguments.label_smoothing);
  }
  return spec;
}

/// Whether the noted loss can judge these data: a head may have been replaced since.
bool is_for(const std::string& noted, const Dataset& dataset) {
  try {
    return has_class_targets(loss_from_spec(noted)) == (dataset.info().target.dtype == DType::i64);
  } catch (const Error&) {  // a loss of another version or program
    return false;
  }
}

/// Empty unless it is a list of texts.
std::vector<std::string> names_from_json(const std::string& text) {
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::string> names;
  if (!list.is_array()) return names;
  for (const nlohmann::json& name : list) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

void say(const std::string& text) {
  if (!verbosity().quiet) std::cerr << "graft: " << text << std::endl;
}

void warn(const std::string& text) {
  std::cerr << "graft: warning: " << text << std::endl;
}

/// What --resize is, as far as command or file say.
std::string size_for(const Model& model, const std::string& said) {
  const std::string noted = note_of(model, kResizeNote);
  if (!said.empty()) {
    if (!noted.empty() && noted != said) {
      warn(text("the file was trained with --resize ", noted, ", this command says ", said));
    }
    return said;
  }
  if (noted.empty() || noted == "none") return "";
  try {
    image_size({.resize = noted});
  } catch (const Error& error) {
    fail(ErrorKind::model, "the file's note ", kResizeNote, ": ", error.what(),
         "; say --resize none, or HxW");
  }
  say(text("images are made ", noted, ", as the file says"));
  return noted;
}

/// What --normalize is, as far as command or file say; numbers stand for "data".
std::string normalization_for(const Model& model, const std::string& said,
                              const std::string& data) {
  const std::string noted = note_of(model, kNormalizeNote);
  if (said.empty()) {
    if (noted.empty() || noted == "none") return "none";
    try {
      in_numbers(noted, data);
    } catch (const Error& error) {
      fail(ErrorKind::model, "the file's note ", kNormalizeNote, ": ", error.what(),
           "; say --normalize none, or numbers");
    }
    say(text("inputs are normalized by ", noted, ", as the file says"));
    return noted;
  }
  const std::string now = in_numbers(said, data);
  if (!noted.empty() && noted != now) {
    warn(text("the file was trained with --normalize ", noted, ", this command says ", now));
  }
  return now;
}

}  // namespace

std::string note_of(const Model& model, std::string_view key) {
  const auto at =
      std::ranges::find(model.metadata, key, &std::pair<std::string, std::string>::first);
  return at == model.metadata.end() ? "" : at->second;
}

void set_note(Model& model, std::string_view key, const std::string& text) {
  const auto at =
      std::ranges::find(model.metadata, key, &std::pair<std::string, std::string>::first);
  if (at != model.metadata.end()) {
    at->second = text;
  } else {
    model.metadata.emplace_back(key, text);
  }
}

void leave_notes(const TrainArguments& arguments, const TrainOptions& options,
                 const DatasetInfo& data, Model& model) {
  set_note(model, kNormalizeNote, arguments.data.normalize);
  if (!arguments.data.resize.empty()) set_note(model, kResizeNote, arguments.data.resize);
  set_note(model, kTaskNote,
           has_class_targets(options.loss) ? "classification" : options.loss.name);
  set_note(model, kTrainedNote,
           text("graft ", kVersion, ": ", without_folder(arguments.data.spec), ", ",
                name(*options.optimizer), ", rate ", learning_rate(*options.optimizer)));
  set_note(model, kLossNote, spec_of(arguments.loss, options.loss));
  const std::string& output = arguments.loss.output;
  if (output != note_of(model, kOutputNote)) set_note(model, kOutputNote, output);
  set_note(model, kSampleNote, sample_of(data));
  if (data.class_names.empty()) return;
  const std::string conflict = name_conflict(class_names_of(model), data.class_names);
  if (!conflict.empty()) say("the data's names of classes replace the file's: " + conflict);
  set_note(model, kClassesNote,
           nlohmann::json(data.class_names)
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  set_note(model, kNamesNote, names_to_python(data.class_names));
}

void complete_data(const Model& model, DataArguments& arguments) {
  arguments.resize = size_for(model, arguments.resize);
  arguments.normalize = normalization_for(model, arguments.normalize, arguments.spec);
}

std::vector<std::string> class_names_of(const Model& model) {
  std::vector<std::string> names = names_from_json(note_of(model, kClassesNote));
  return names.empty() ? names_from_python(note_of(model, kNamesNote)) : names;
}

std::string noted_output(const Model& model) {
  const std::string noted = note_of(model, kOutputNote);
  const bool is_there = std::ranges::any_of(
      model.graph().outputs(), [&](const Value* output) { return output->name() == noted; });
  return is_there ? noted : std::string();
}

void complete_loss(const Model& model, const Dataset& dataset, LossArguments& arguments) {
  const std::string noted = note_of(model, kLossNote);
  if (noted.empty() || !is_for(noted, dataset)) return;
  const std::string said = spec_of(arguments, choose_loss(arguments, model, dataset));
  if (said == noted) return;
  if (arguments.name != "auto") {
    return warn(text("the file was trained with --loss ", noted, ", this command says ", said));
  }
  arguments.name = noted;
  say(text("the loss is ", noted, ", as the file says"));
}

void say_conflicts(const Model& model, const DatasetInfo& data) {
  const std::string names = name_conflict(class_names_of(model), data.class_names);
  if (!names.empty()) warn(names);
  const std::string noted = note_of(model, kSampleNote);
  if (!noted.empty() && noted != sample_of(data)) {
    warn(text("the file was trained on samples of ", noted, ", these are ", sample_of(data)));
  }
}

}  // namespace graft::cli
