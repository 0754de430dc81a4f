#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace CLI {
class App;
}

// A command's options as JSON, {"epochs": 2, "data": "fashion-mnist", ...}: how a run folder keeps
// them in config.json, below "settings".
namespace graft::cli {

/// What the options say, given or by default. `resolved`: what they came to, where that is more.
nlohmann::ordered_json settings_of(const CLI::App& verb, const nlohmann::ordered_json& resolved);

/// Takes settings for those options that were not given. Throws CLI::ValidationError that names
/// `file` for a setting that is none.
void take_settings(CLI::App& verb, const nlohmann::ordered_json& settings,
                   const std::filesystem::path& file);

/// Options that were given and say something else than `settings`, but for those in `free`: as
/// "--lr 0.1 (the run has 0.05)".
std::vector<std::string> contradictions(const CLI::App& verb,
                                        const nlohmann::ordered_json& settings,
                                        const std::vector<std::string>& free);

/// The settings that a file holds: a run's config.json, or the object itself. Throws Error{io}.
nlohmann::ordered_json read_settings(const std::filesystem::path& file);

}  // namespace graft::cli
