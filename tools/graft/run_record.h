#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/run_log.h"

namespace graft::cli {

/// A measure over epochs: (epoch, value).
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// From the least to the largest of numbers; the other way round where there is none.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};
/// Those of all points: of epochs, then of values.
std::pair<Range, Range> ranges_of(std::span<const Curve> curves);

/// Curves that are drawn over one another.
struct Chart {
  std::string title;
  std::vector<Curve> curves;
};
/// "loss" and "validation_loss" share a chart.
void add_curve(const std::string& measure, Curve curve, std::vector<Chart>& charts);

/// Of a run's config.json, and of what else --config reads.
constexpr std::uint64_t kMostConfigBytes = std::uint64_t{16} << 20U;

/// What `graft train` left behind in a run's folder.
struct RunRecord {
  std::string name;
  std::filesystem::path folder;
  /// config.json: version, machine, settings.
  nlohmann::ordered_json config;
  /// Epoch 0 is the measurement before the first step.
  std::vector<MetricsRow> epochs;

  /// What config.json has as `key` of its object `part`, as text; empty where there is none.
  std::string entry(const std::string& part, const std::string& key) const;
  std::string setting(const std::string& key) const { return entry("settings", key); }
  /// Of Graft.
  std::string version() const;
  /// The names of what epochs measured, counts left out.
  std::vector<std::string> measures() const;
  /// The last number that epochs have under this name; NaN where there is none.
  double last(const std::string& measure) const;
  /// Empty where no epoch has it.
  Curve curve(const std::string& measure) const;
};

/// Throws Error{io} that says what is missing if the folder holds no run.
RunRecord read_run(const std::filesystem::path& folder);

/// A number or text as a person writes it.
std::string plain_text(const nlohmann::ordered_json& value);

}  // namespace graft::cli
