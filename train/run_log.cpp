#include "train/run_log.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/file.h"
#include "train/monitor.h"
#include "train/trainer.h"

namespace graft {
namespace {

using Json = nlohmann::ordered_json;

/// Counts are written as such.
bool is_count(const std::string& name) {
  return name == "epoch" || name == "updates" || name == "samples";
}

Json json_of(const std::string& name, double number) {
  const bool is_possible = std::abs(number) <= static_cast<double>(kMostCounted);  // it may be read
  if (is_count(name) && is_possible) return static_cast<std::int64_t>(number);
  return number;
}

std::string line_of(const MetricsRow& row) {
  Json line;
  for (const auto& [name, number] : row) line[name] = json_of(name, number);
  return line.dump() + "\n";
}

/// All columns that a row has, those of the first rows first.
std::vector<std::string> columns_of(const std::vector<MetricsRow>& rows) {
  std::vector<std::string> columns{"epoch", "updates", "learning_rate"};
  for (const MetricsRow& row : rows) {
    for (const auto& [name, number] : row) {
      if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
    }
  }
  return columns;
}

std::string csv_of(const std::vector<MetricsRow>& rows) {
  const std::vector<std::string> columns = columns_of(rows);
  std::string csv;
  for (const std::string& name : columns) csv += (csv.empty() ? "" : ",") + name;
  for (const MetricsRow& row : rows) {
    csv += "\n";
    for (const std::string& name : columns) {
      const auto at = std::ranges::find(row, name, &MetricsRow::value_type::first);
      if (name != columns.front()) csv += ",";
      if (at != row.end()) csv += json_of(name, at->second).dump();
    }
  }
  return csv + "\n";
}

}  // namespace

std::vector<MetricsRow> read_metrics(const std::filesystem::path& file) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  std::vector<MetricsRow> rows;
  std::istringstream lines(read_file(file, kMostBytes));
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("epoch") || !json["epoch"].is_number()) continue;
    MetricsRow row{{"epoch", json["epoch"].get<double>()}};
    for (const auto& [name, value] : json.items()) {
      if (value.is_number() && name != "epoch") row.emplace_back(name, value.get<double>());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void RunLog::on_start(Run& run) {
  rows_.clear();
  if (run.position.epoch == 0 && run.position.batch == 0) return;
  const std::filesystem::path file = folder_ / "metrics.jsonl";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return;
  try {
    rows_ = read_metrics(file);
  } catch (const Error& error) {
    run.report_problem(error.what());
  }
  std::erase_if(rows_,
                [&](const MetricsRow& row) { return row.front().second > run.position.epoch; });
}

void RunLog::on_step(Run& /*run*/, const Progress& progress) {
  learning_rate_ = progress.learning_rate.value_or(0.0);
}

void RunLog::on_validation(Run& run, const Evaluation& evaluation) {
  if (run.position.epoch > 0) return;  // part of the epoch's line
  MetricsRow row{{"epoch", 0},
                 {"updates", static_cast<double>(run.trainer.train_step().updates())}};
  for (auto& pair : numbers_of(evaluation)) row.push_back(std::move(pair));
  add(run, std::move(row));
}

void RunLog::on_epoch(Run& run, const EpochReport& report) {
  MetricsRow row{{"epoch", report.epoch},
                 {"updates", static_cast<double>(run.trainer.train_step().updates())},
                 {"learning_rate", learning_rate_}};
  for (auto& pair : numbers_of(report)) row.push_back(std::move(pair));
  row.emplace_back("samples", static_cast<double>(report.samples));
  row.emplace_back("seconds", report.seconds);
  add(run, std::move(row));
}

void RunLog::add(Run& run, MetricsRow row) {
  rows_.push_back(std::move(row));
  write(run);
}

/// Both are written whole: a line is there or is not, whatever ends the process.
void RunLog::write(Run& run) {
  std::string lines;
  for (const MetricsRow& row : rows_) lines += line_of(row);
  try {
    make_folder(folder_);
    write_file(folder_ / "metrics.jsonl", lines);
    write_file(folder_ / "metrics.csv", csv_of(rows_));
  } catch (const Error& error) {
    run.report_problem(error.what());
  }
}

}  // namespace graft
