#include "tools/graft/file_notes.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graft/version.h"
#include "tools/graft/arguments.h"
#include "tools/graft/format_internal.h"
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
  set_note(model, kTaskNote,
           has_class_targets(options.loss) ? "classification" : options.loss.name);
  set_note(model, kTrainedNote,
           text("graft ", kVersion, ": ", arguments.data.spec, ", ", name(*options.optimizer),
                ", rate ", learning_rate(*options.optimizer)));
  if (!data.class_names.empty()) {
    set_note(model, kClassesNote,
             nlohmann::json(data.class_names)
                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

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
    if (!verbosity().quiet) {
      std::cerr << "graft: inputs are normalized by " << noted << ", as the file says" << std::endl;
    }
    return noted;
  }
  const std::string now = in_numbers(said, data);
  if (!noted.empty() && noted != now) {
    std::cerr << "graft: warning: the file was trained with --normalize " << noted
              << ", this command says " << now << std::endl;
  }
  return now;
}

}  // namespace graft::cli
