#include "tools/graft/pass_table.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"
#include "tools/graft/format_internal.h"

namespace graft::cli {
namespace {

using passes::PassRecord;

nlohmann::ordered_json passes_json(const PassRun& run) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PassRecord& one : run.log.records) {
    list.push_back({{"name", one.name},
                    {"depth", one.depth},
                    {"ms", 1e3 * one.seconds},
                    {"nodes_before", one.nodes_before},
                    {"nodes_after", one.nodes_after},
                    {"changed", one.changed}});
  }
  return {{"compiled", run.title}, {"passes", std::move(list)}};
}

void print_row(double seconds, std::size_t before, std::size_t after, const std::string& name) {
  std::cout << std::setw(9) << fixed(1e3 * seconds, 3) << std::setw(8) << before << std::setw(7)
            << after << "  " << name << '\n';
}

void print_table(const PassRun& run) {
  std::cout << run.title << '\n';
  if (run.log.records.empty()) {
    std::cout << "  not compiled\n";
    return;
  }
  std::cout << "       ms  before  after  pass (* changed the graph)\n";
  double total = 0;
  for (const PassRecord& one : run.log.records) {
    if (one.depth == 0) total += one.seconds;
    print_row(one.seconds, one.nodes_before, one.nodes_after,
              text(std::string(2 * static_cast<std::size_t>(one.depth), ' '), one.name,
                   one.changed ? " *" : ""));
  }
  print_row(total, run.log.records.front().nodes_before, run.log.records.back().nodes_after, "all");
}

}  // namespace

void print_passes(std::span<const PassRun> runs, bool as_json) {
  for (const PassRun& run : runs) {
    if (as_json) {
      print_json(passes_json(run));
    } else {
      print_table(run);
    }
  }
}

void print_graphs_behind(const std::string& pass, std::span<const PassRun> runs) {
  std::vector<std::string> names;
  for (const PassRun& run : runs) {
    const std::vector<PassRecord>& records = run.log.records;
    const auto times = std::ranges::count(records, pass, &PassRecord::name);
    int time = 0;
    for (const PassRecord& one : records) {
      if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
      if (one.name != pass) continue;
      std::cout << "# " << run.title << ", behind " << pass;
      if (times > 1) std::cout << ", time " << ++time << " of " << times;
      std::cout << '\n' << one.graph;
    }
    if (times > 0) return;
  }
  fail(ErrorKind::argument, "no pass '", pass, "' ran; those that did: ", joined(names));
}

}  // namespace graft::cli
