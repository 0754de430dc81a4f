#include "tools/graft/run_record.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "io/file.h"

namespace graft::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::pair<Range, Range> ranges_of(std::span<const Curve> curves) {
  const auto include = [](Range& range, double number) {
    range = {std::min(range.low, number), std::max(range.high, number)};
  };
  std::pair<Range, Range> ranges;
  for (const Curve& curve : curves) {
    for (const auto& [epoch, value] : curve.points) {
      include(ranges.first, epoch);
      include(ranges.second, value);
    }
  }
  return ranges;
}

void add_curve(const std::string& measure, Curve curve, std::vector<Chart>& charts) {
  constexpr std::string_view kValidation = "validation_";
  const std::string title =
      measure.starts_with(kValidation) ? measure.substr(kValidation.size()) : measure;
  auto chart = std::ranges::find(charts, title, &Chart::title);
  if (chart == charts.end()) chart = charts.insert(chart, {title, {}});
  chart->curves.push_back(std::move(curve));
}

std::string RunRecord::entry(const std::string& part, const std::string& key) const {
  const auto object = config.find(part);
  if (object == config.end() || !object->is_object()) return {};
  const auto at = object->find(key);
  return at == object->end() || at->is_null() ? std::string() : plain_text(*at);
}

std::string RunRecord::version() const {
  const auto at = config.find("graft");
  return at == config.end() ? std::string() : plain_text(*at);
}

std::vector<std::string> RunRecord::measures() const {
  constexpr std::array<std::string_view, 3> kCounts{"epoch", "updates", "samples"};
  std::vector<std::string> names;
  for (const MetricsRow& row : epochs) {
    for (const auto& [measure, number] : row) {
      if (std::ranges::find(kCounts, measure) != kCounts.end()) continue;
      if (std::ranges::find(names, measure) == names.end()) names.push_back(measure);
    }
  }
  return names;
}

double RunRecord::last(const std::string& measure) const {
  const Curve all = curve(measure);
  return all.points.empty() ? std::numeric_limits<double>::quiet_NaN() : all.points.back().second;
}

Curve RunRecord::curve(const std::string& measure) const {
  Curve result{measure, {}};
  for (const MetricsRow& row : epochs) {
    const auto at = std::ranges::find(row, measure, &MetricsRow::value_type::first);
    if (at == row.end() || !std::isfinite(at->second)) continue;
    result.points.emplace_back(row.front().second, at->second);
  }
  return result;
}

RunRecord read_run(const std::filesystem::path& folder) {
  RunRecord run;
  run.folder = folder;
  const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  run.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  std::error_code ignored;
  const std::filesystem::path metrics = folder / "metrics.jsonl";
  if (!std::filesystem::exists(metrics, ignored)) {
    fail(ErrorKind::io, "no run in '", folder.string(),
         "': metrics.jsonl is not there; wanted a folder that graft train --run wrote");
  }
  if (std::filesystem::exists(folder / "config.json", ignored)) {
    run.config = Json::parse(read_file(folder / "config.json", kMostConfigBytes), nullptr, false);
  }
  if (!run.config.is_object()) run.config = Json::object();
  run.epochs = read_metrics(metrics);
  return run;
}

std::string plain_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace graft::cli
