#include "tools/graft/profile.h"

#include <algorithm>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "core/ops/cost.h"
#include "io/file.h"
#include "tools/graft/format_internal.h"

namespace graft::cli {
namespace {

double operations_of(const Node& node) {
  return 2.0 * static_cast<double>(node_multiply_adds(node).value_or(0));
}

/// Steps that are alike, added up.
struct StepGroup {
  std::string name;
  int steps = 0;
  double seconds = 0.0;
  double operations = 0.0;
  double bytes = 0.0;

  void add(const StepProfile& step) {
    ++steps;
    seconds += step.seconds;
    operations += operations_of(*step.node);
    bytes += static_cast<double>(step.bytes);
  }
};

std::string shapes_of(const Node& node) {
  std::string result;
  for (const Value* input : node.inputs()) {
    if (input != nullptr) result += text(result.empty() ? "" : " ", input->type());
  }
  return result;
}

void print_group(std::ostream& out, const StepGroup& group, double total, int runs) {
  const double seconds = group.seconds / runs;
  const double rate = seconds > 0.0 ? 1e-9 / seconds : 0.0;
  out << std::setw(8) << fixed(seconds * 1e3, 3) << std::setw(8)
      << fixed(100.0 * group.seconds / total, 1) << std::setw(7) << group.steps << std::setw(9)
      << fixed(group.operations * rate, 1) << std::setw(8) << fixed(group.bytes * rate, 1) << "  "
      << group.name << '\n';
}

void print_groups(std::ostream& out, std::vector<StepGroup> groups, double total, int runs,
                  std::size_t most) {
  out << "      ms       %  steps  GFLOP/s    GB/s\n";
  std::ranges::sort(groups, std::ranges::greater{}, &StepGroup::seconds);
  if (groups.size() > most) groups.resize(most);
  for (const StepGroup& group : groups) print_group(out, group, total, runs);
}

}  // namespace

void print_profile(std::ostream& out, const std::vector<StepProfile>& steps, int runs) {
  constexpr std::size_t kSlowest = 25;
  std::map<std::string, StepGroup> by_op;
  std::vector<StepGroup> single;
  double total = 0.0;
  for (const StepProfile& step : steps) {
    const std::string op = text(step.node->op_type(), " by ", step.kernel);
    StepGroup& group = by_op[op];
    group.name = op;
    group.add(step);
    StepGroup& one = single.emplace_back();
    one.name = text(op, " ", shapes_of(*step.node));
    one.add(step);
    total += step.seconds;
  }
  std::vector<StepGroup> ops;
  for (auto& [name, group] : by_op) ops.push_back(std::move(group));
  out << "by op, of " << fixed(total / runs * 1e3, 3) << " ms in " << steps.size() << " steps\n";
  print_groups(out, std::move(ops), total, runs, steps.size());
  out << "slowest steps\n";
  print_groups(out, std::move(single), total, runs, kSlowest);
}

void write_trace(const std::string& path, const std::vector<StepProfile>& steps, int runs) {
  nlohmann::json events = nlohmann::json::array();
  double start = 0.0;
  for (const StepProfile& step : steps) {
    const double microseconds = step.seconds / runs * 1e6;
    events.push_back({{"name", step.node->op_type()},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", start},
                      {"dur", microseconds},
                      {"args",
                       {{"node", step.node->label()},
                        {"kernel", step.kernel},
                        {"inputs", shapes_of(*step.node)},
                        {"operations", operations_of(*step.node)},
                        {"bytes", step.bytes}}}});
    start += microseconds;
  }
  write_file(path, nlohmann::json{{"traceEvents", std::move(events)}}.dump());
}

}  // namespace graft::cli
