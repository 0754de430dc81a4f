#include "tools/graft/run_record.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "core/base/error.h"
#include "io/file.h"

namespace graft::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20U;

bool is_epoch(const Json& line) {
  return line.is_object() && line.contains("epoch") && line["epoch"].is_number();
}

}  // namespace

std::string RunRecord::setting(const std::string& key) const {
  const auto settings = config.find("settings");
  if (settings == config.end() || !settings->is_object()) return {};
  const auto at = settings->find(key);
  return at == settings->end() || at->is_null() ? std::string() : plain_text(*at);
}

double RunRecord::last(const std::string& measure) const {
  const Curve all = curve(measure);
  return all.points.empty() ? std::numeric_limits<double>::quiet_NaN() : all.points.back().second;
}

Curve RunRecord::curve(const std::string& measure) const {
  Curve result{measure, {}};
  for (const Json& line : epochs) {
    const auto at = line.find(measure);
    if (at == line.end() || !at->is_number()) continue;
    const double value = at->get<double>();
    if (std::isfinite(value)) result.points.emplace_back(line["epoch"].get<double>(), value);
  }
  return result;
}

RunRecord read_run(const std::filesystem::path& folder) {
  RunRecord run;
  run.folder = folder;
  run.name = std::filesystem::absolute(folder).lexically_normal().filename().string();
  if (run.name.empty()) {  // the path ended in a slash
    run.name =
        std::filesystem::absolute(folder).lexically_normal().parent_path().filename().string();
  }
  std::error_code ignored;
  const std::filesystem::path metrics = folder / "metrics.jsonl";
  if (!std::filesystem::exists(metrics, ignored)) {
    fail(ErrorKind::io, "no run in '", folder.string(),
         "': metrics.jsonl is not there; wanted a folder that graft train --run wrote");
  }
  if (std::filesystem::exists(folder / "config.json", ignored)) {
    run.config = Json::parse(read_file(folder / "config.json", kMostBytes), nullptr, false);
  }
  if (!run.config.is_object()) run.config = Json::object();
  std::istringstream lines(read_file(metrics, kMostBytes));
  for (std::string line; std::getline(lines, line);) {
    Json json = Json::parse(line, nullptr, false);
    if (is_epoch(json)) run.epochs.push_back(std::move(json));
  }
  return run;
}

std::string plain_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace graft::cli
