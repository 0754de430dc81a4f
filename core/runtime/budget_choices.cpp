#include "core/runtime/budget_choices.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/ops/alias.h"
#include "core/ops/cost.h"

namespace graft {

std::vector<Dropped> BudgetChoices::cheap(double share) const {
  double step_cost = 0;
  for (const auto& node : graph_.nodes()) {
    if (!is_view(*node)) step_cost += cost_in_bytes(*node);
  }
  std::vector<Dropped> choices;
  for (const double density : densities()) {
    Dropped choice = choose(density, std::numeric_limits<double>::infinity(), false);
    if (cost_of_copies(choice) > share * step_cost) break;
    choices.push_back(std::move(choice));
  }
  return choices;
}

double BudgetChoices::cost_of_copies(const Dropped& dropped) const {
  double cost = 0;
  Dropped read;  // readers stand behind producers, so the last come first
  std::unordered_set<const Node*> copied;
  for (auto one = candidates_.rbegin(); one != candidates_.rend(); ++one) {
    if (!dropped.contains(one->value)) continue;
    if (!one->is_read_late && !read.contains(one->value)) continue;
    const Node& node = *one->value->producer();
    if (!copied.insert(&node).second) continue;
    cost += cost_in_bytes(node);
    for (const Value* input : node.inputs()) {
      if (input != nullptr) read.insert(origin(input));
    }
  }
  return cost;
}

std::vector<double> BudgetChoices::densities() const {
  constexpr double kSteps = 8;
  std::vector<const Candidate*> sorted;
  double total = 0;
  for (const Candidate& one : candidates_) {
    if (!one.is_read_late) continue;
    sorted.push_back(&one);
    total += one.bytes;
  }
  std::ranges::stable_sort(sorted, {}, [](const Candidate* one) { return one->density(); });
  std::vector<double> limits;
  double sum = 0;
  for (const Candidate* one : sorted) {
    sum += one->bytes;
    const bool is_step = sum * kSteps >= total * static_cast<double>(limits.size() + 1);
    if (is_step && (limits.empty() || limits.back() < one->density())) {
      limits.push_back(one->density());
    }
  }
  if (!sorted.empty() && limits.back() < sorted.back()->density()) {
    limits.push_back(sorted.back()->density());
  }
  return limits;
}

Dropped BudgetChoices::choose(double density, double segment_bytes, bool only_at_cuts) const {
  Dropped dropped;
  double since_checkpoint = 0;
  double alive = 0;
  std::vector<std::pair<int, double>> ends;  // a heap: last forward read, bytes
  for (const Candidate& one : candidates_) {
    if (one.is_read_late && one.density() > density) continue;
    while (!ends.empty() && ends.front().first <= one.made) {
      alive -= ends.front().second;
      std::ranges::pop_heap(ends, std::greater{});
      ends.pop_back();
    }
    since_checkpoint += one.is_read_late ? one.bytes : 0;
    const bool may_keep = !only_at_cuts || alive <= one.bytes / 8;
    if (since_checkpoint > segment_bytes && may_keep) {
      since_checkpoint = 0;
      continue;
    }
    dropped.insert(one.value);
    alive += one.bytes;
    ends.emplace_back(one.last_forward_read, one.bytes);
    std::ranges::push_heap(ends, std::greater{});
  }
  return dropped;
}

double BudgetChoices::bytes_up_to(double density) const {
  double total = 0;
  for (const Candidate& one : candidates_) {
    if (one.is_read_late && one.density() <= density) total += one.bytes;
  }
  return total;
}

std::vector<const Candidate*> BudgetChoices::dearest(const Dropped& dropped,
                                                     std::size_t most) const {
  std::vector<const Candidate*> found;
  for (const Candidate& one : candidates_) {
    if (dropped.contains(one.value)) found.push_back(&one);
  }
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const Candidate* one) { return one->density(); });
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace graft
