#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/graft/config_file.h"

// The settings of a run: what its config.json gets, and what another command may not change.
namespace graft::cli {

/// What the options say, given or by default. `resolved`: what they came to, where that is more.
nlohmann::ordered_json settings_of(const CLI::App& verb, const nlohmann::ordered_json& resolved);

/// The data spec with an absolute place: "mnist:/data/mnist" of "mnist:mnist/", said in /data.
std::string absolute_spec(const std::string& spec);

/// Options that were given and say something else than the run's, but for those in `free`: as
/// "--lr 0.1 (the run has 0.05)".
std::vector<std::string> contradictions(const CLI::App& verb, const ConfigFile& run,
                                        const std::vector<std::string>& free);

}  // namespace graft::cli
