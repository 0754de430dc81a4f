#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "core/base/closest.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/options.h"
#include "tools/graft/run_record.h"
#include "tools/graft/summary.h"
#include "tools/graft/text_chart.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

struct PlotArguments {
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

/// Times and rates are curves too, but seldom what is looked for.
std::vector<std::string> wanted_measures(const RunRecord& run, const PlotArguments& arguments) {
  std::vector<std::string> names = run.measures();
  std::erase_if(names, [&](const std::string& name) {
    if (arguments.measures.empty()) return name == "seconds" || name == "learning_rate";
    return std::ranges::find(arguments.measures, name) == arguments.measures.end();
  });
  return names;
}

ExitCode plot(const PlotArguments& arguments) {
  std::vector<Chart> charts;
  std::vector<std::string> known;
  for (const std::string& folder : arguments.runs) {
    const RunRecord run = read_run(folder);
    for (const std::string& measure : run.measures()) {
      if (std::ranges::find(known, measure) == known.end()) known.push_back(measure);
    }
    for (const std::string& measure : wanted_measures(run, arguments)) {
      Curve curve = run.curve(measure);
      curve.name = (arguments.runs.size() > 1 ? run.name + ' ' : "") + measure + ' ' +
                   fixed(run.last(measure), 4);
      add_curve(measure, std::move(curve), charts);
    }
  }
  if (charts.empty()) {
    fail(ErrorKind::argument, "nothing to plot",
         known.empty() ? ": no epoch has ended" : "; measured: " + quoted_list(known));
  }
  constexpr std::size_t kUsual = 80;
  constexpr std::size_t kWidest = 120;
  const std::size_t columns = text_columns();
  TextChartOptions options{.columns = columns > 1000 ? kUsual : std::min(columns, kWidest)};
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const std::vector<Curve>& curves = charts[i].curves;
    options.braille = has_utf8() && curves.size() == 1;  // dots do not say whose they are
    std::cout << (i == 0 ? "" : "\n") << text_chart(curves, options);
  }
  return ok;
}

}  // namespace

Run add_plot(CLI::App& app) {
  const auto arguments = std::make_shared<PlotArguments>();
  app.add_option("RUN", arguments->runs, "folders that graft train wrote")->required();
  app.add_option("--measure", arguments->measures,
                 "draw only this one, like validation_loss; may be given several times")
      ->type_name("NAME");
  return [arguments] { return plot(*arguments); };
}

}  // namespace graft::cli
