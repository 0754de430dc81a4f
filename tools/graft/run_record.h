#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace graft::cli {

/// A measure over epochs: (epoch, value).
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// What `graft train` left behind in a run's folder.
struct RunRecord {
  std::string name;
  std::filesystem::path folder;
  /// config.json: settings, version, machine.
  nlohmann::ordered_json config;
  /// A line of metrics.jsonl each; epoch 0 is the measurement before the first step.
  std::vector<nlohmann::ordered_json> epochs;

  /// The setting as text; empty where there is none.
  std::string setting(const std::string& key) const;
  /// The last number that epochs have under this name; NaN where there is none.
  double last(const std::string& measure) const;
  /// Empty where no epoch has it.
  Curve curve(const std::string& measure) const;
};

/// Throws Error{io} that says what is missing if the folder holds no run. Lines that are no JSON
/// objects with an epoch, as a killed process may leave, are passed over.
RunRecord read_run(const std::filesystem::path& folder);

/// A number or text as a person writes it.
std::string plain_text(const nlohmann::ordered_json& value);

}  // namespace graft::cli
