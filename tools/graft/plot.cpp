#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "tools/graft/format_internal.h"
#include "tools/graft/options.h"
#include "tools/graft/run_record.h"
#include "tools/graft/summary.h"
#include "tools/graft/text_chart.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

struct Arguments {
  std::vector<std::string> runs;
  std::vector<std::string> measures;
};

/// What the environment says of characters: the first that is set counts.
bool has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text = value;
    return text.find("UTF-8") != std::string_view::npos ||
           text.find("utf8") != std::string_view::npos;
  }
  return false;
}

/// All that epochs have under numbers, but for counts and times.
std::vector<std::string> measures_of(const RunRecord& run) {
  std::vector<std::string> names;
  for (const auto& line : run.epochs) {
    for (const auto& [name, value] : line.items()) {
      const bool is_measure = value.is_number() && name != "epoch" && name != "updates" &&
                              name != "samples" && name != "seconds" && name != "learning_rate";
      if (is_measure && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

/// "validation_loss" belongs into the chart of "loss".
std::string chart_of(const std::string& measure) {
  constexpr std::string_view kValidation = "validation_";
  return measure.starts_with(kValidation) ? measure.substr(kValidation.size()) : measure;
}

ExitCode plot(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::vector<Curve>>> charts;
  std::string known;
  for (const std::string& folder : arguments.runs) {
    const RunRecord run = read_run(folder);
    for (const std::string& measure : measures_of(run)) {
      if (known.find("'" + measure + "'") == std::string::npos) known += " '" + measure + "'";
      const bool is_wanted =
          arguments.measures.empty() ||
          std::ranges::find(arguments.measures, measure) != arguments.measures.end();
      if (!is_wanted) continue;
      Curve curve = run.curve(measure);
      curve.name = (arguments.runs.size() > 1 ? run.name + ' ' : "") + measure + ' ' +
                   fixed(run.last(measure), 4);
      auto chart =
          std::ranges::find(charts, chart_of(measure), &decltype(charts)::value_type::first);
      if (chart == charts.end()) chart = charts.insert(chart, {chart_of(measure), {}});
      chart->second.push_back(std::move(curve));
    }
  }
  if (charts.empty()) {
    fail(ErrorKind::argument, "nothing to plot",
         known.empty() ? ": no epoch has ended" : "; measured:" + known);
  }
  constexpr std::size_t kUsual = 80;
  constexpr std::size_t kWidest = 120;
  const std::size_t columns = text_columns();
  TextChartOptions options{.columns = columns > 1000 ? kUsual : std::min(columns, kWidest)};
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const std::vector<Curve>& curves = charts[i].second;
    options.braille = has_utf8() && curves.size() == 1;  // dots do not say whose they are
    std::cout << (i == 0 ? "" : "\n") << text_chart(curves, options);
  }
  return ok;
}

}  // namespace

Run add_plot(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("RUN", arguments->runs, "folders that graft train wrote")->required();
  app.add_option("--measure", arguments->measures,
                 "draw only this one, like validation_loss; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME");
  return [arguments] { return plot(*arguments); };
}

}  // namespace graft::cli
