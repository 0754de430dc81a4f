// Which values of the forward part to keep for the backward part, and which to compute again. Two
// numbers span the choices: how dear a value may be, by cost a byte, to be dropped; and how many
// bytes may be dropped before one value is kept all the same, as a checkpoint, so that no chain of
// copies becomes long (with steps of sqrt(n) this is Chen's schedule). For a budget, each of some
// choices is planned, and the one taken is improved value by value: where none fits, until less is
// alive in all steps together, and where one does, until it costs no less. Start at
// BudgetSearch::fit; docs/adr/0011 has the reasons.
#include "core/runtime/budget.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "core/graph/order.h"
#include "core/ops/alias.h"
#include "core/ops/cost.h"
#include "core/runtime/budget_candidates.h"

namespace graft {
namespace {

using Dropped = std::unordered_set<const Value*>;

class BudgetSearch {
 public:
  BudgetSearch(Graph& graph, WorkspaceBytes& workspaces)
      : graph_(graph),
        workspaces_(workspaces),
        given_order_(node_order(graph)),
        boundary_(graph.outputs().front()->producer()),
        candidates_(budget_candidates(graph)) {}

  BudgetedArena fit(std::size_t budget) {
    budget_ = budget;
    consider({});
    for (const double density : densities()) {
      try_checkpoints(density);
      if (best_.bytes <= budget_) break;
    }
    if (best_.bytes > budget_) shrink();
    if (best_.bytes > budget_) {
      reorder(graph_, given_order_);
      fail(ErrorKind::memory, "the training step needs at least ", least_bytes_,
           " bytes for activations, gradients and scratch memory, though the backward part "
           "computes again what it can; the budget is ",
           budget_);
    }
    keep_the_dearest();
    cheapen();
    return take_best();
  }

  /// Drops all values up to the highest density at which the copies cost no more than `share` of
  /// the step, or up to a lower one that is as good, if that makes the arena smaller.
  BudgetedArena drop_cheap(double share) {
    std::vector<Dropped> choices = cheap_choices(share);
    if (!choices.empty()) {
      constexpr double kWorthIt = 0.95;
      best_.bytes = static_cast<std::size_t>(kWorthIt * static_cast<double>(plan({}).bytes));
    }
    for (; !choices.empty(); choices.pop_back()) {
      Trial trial = plan(std::move(choices.back()));
      if (trial.bytes <= best_.bytes) {
        best_ = std::move(trial);
      } else if (!best_.dropped.empty()) {
        break;
      }
    }
    return take_best();
  }

 private:
  enum class Fate {
    kept,
    made_again,  ///< once, before the first late reader
    made_apart,  ///< anew before each late reader
  };
  using Change = std::pair<const Candidate*, Fate>;

  struct Trial {
    Dropped dropped;
    Dropped apart;                 ///< of these, those made anew for each reader
    std::size_t bytes = kUnknown;  ///< of the arena, if it was placed
    std::size_t most_alive = 0;    ///< at one step
    double excess = 0;             ///< over the target, of all steps together
    double cost = std::numeric_limits<double>::infinity();
  };
  static constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

  BudgetedArena take_best() {
    std::vector<passes::Repeat> repeats = repeat(best_.dropped, best_.apart);
    return {order_and_plan(graph_, workspaces_), std::move(repeats)};
  }

  /// All values up to each of the `densities` that keep within the share, the lowest first.
  std::vector<Dropped> cheap_choices(double share) const {
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

  /// Of one copy of each node that makes a dropped value which is read late, or which another copy
  /// reads. Readers stand behind producers, so the last come first.
  double cost_of_copies(const Dropped& dropped) const {
    double cost = 0;
    Dropped read;
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

  /// The limits to try, lowest first: each admits about the same number of bytes more.
  std::vector<double> densities() const {
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

  void try_checkpoints(double density) {
    double total = 0;
    for (const Candidate& one : candidates_) {
      if (one.is_read_late && one.density() <= density) total += one.bytes;
    }
    constexpr double kStep = 1.5;
    constexpr double kMostSegments = 300;
    for (const bool only_at_cuts : {true, false}) {
      for (double segments = 1; segments < kMostSegments; segments *= kStep) {
        consider(choose(density, total / segments, only_at_cuts));
      }
    }
  }

  /// All values up to that density, but one whenever `segment_bytes` have come together. At a cut
  /// no other dropped value is still to be read by the forward part: what is kept there cuts the
  /// chain of copies through.
  Dropped choose(double density, double segment_bytes, bool only_at_cuts) const {
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

  std::vector<passes::Repeat> repeat(const Dropped& dropped, const Dropped& apart) {
    if (dropped.empty()) return {};
    std::vector<passes::Repeat> repeats = passes::recompute(graph_, boundary_, dropped, apart);
    for (const passes::Repeat& one : repeats) {
      const auto at = workspaces_.find(one.original);
      if (at != workspaces_.end()) workspaces_[one.node] = at->second;
    }
    return repeats;
  }

  void take_out(const std::vector<passes::Repeat>& repeats) {
    for (const passes::Repeat& one : repeats) workspaces_.erase(one.node);
    passes::remove_repeats(graph_, repeats);
  }

  /// Plans the step without these values; its graph is afterwards as it was.
  Trial plan(Dropped dropped, Dropped apart = {}) {
    const std::vector<passes::Repeat> repeats = repeat(dropped, apart);
    Trial trial{.dropped = std::move(dropped), .apart = std::move(apart), .cost = 0};
    Demand demand = memory_demand(graph_, workspaces_);
    for (const std::size_t bytes : alive_bytes(demand.lifetimes)) {
      trial.most_alive = std::max(trial.most_alive, bytes);
      if (bytes > target_) trial.excess += static_cast<double>(bytes - target_);
    }
    // Wherever it were placed, it would be no better than the best.
    const bool is_hopeless = trial.most_alive > budget_ && trial.most_alive > best_.bytes;
    if (!is_hopeless) trial.bytes = place(std::move(demand)).bytes;
    for (const passes::Repeat& one : repeats) {
      if (!is_view(*one.node)) trial.cost += cost_in_bytes(*one.node);
    }
    take_out(repeats);
    return trial;
  }

  /// A plan that fits beats one that does not; then cost counts, or bytes.
  void consider(Dropped dropped, Dropped apart = {}) {
    take_if_better(plan(std::move(dropped), std::move(apart)));
  }

  void take_if_better(const Trial& trial) {
    ++plans_;
    least_bytes_ = std::min(least_bytes_, trial.bytes);
    const bool fits = trial.bytes <= budget_;
    const bool best_fits = best_.bytes <= budget_;
    if (fits != best_fits ? fits : fits ? trial.cost < best_.cost : trial.bytes < best_.bytes) {
      best_ = trial;
    }
  }

  /// Where no schedule of checkpoints fits: changes the best as long as less stands over a target.
  /// The larger the graph, the fewer plans: a refusal should not take long.
  void shrink() {
    constexpr std::size_t kNodesPlanned = 600'000;
    const std::size_t most_plans = plans_ + kNodesPlanned / graph_.nodes().size();
    Trial current = best_;
    const auto is_over = [&] { return best_.bytes <= budget_ || plans_ > most_plans; };
    const auto takes = [&](Trial& trial) {
      if (trial.excess >= current.excess) return false;
      current = std::move(trial);
      if (current.excess == 0) aim_below(current);
      return true;
    };
    do {
      aim_below(current);
    } while (sweep(current, is_over, takes));
  }

  /// Where a choice fits: changes it as long as it fits and costs less.
  void cheapen() {
    constexpr std::size_t kNodesPlanned = 100'000;
    const std::size_t most_plans = plans_ + kNodesPlanned / graph_.nodes().size();
    Trial current = best_;
    const auto is_over = [&] { return plans_ > most_plans; };
    const auto takes = [&](Trial& trial) {
      if (trial.bytes > budget_ || trial.cost >= current.cost) return false;
      current = std::move(trial);
      return true;
    };
    while (sweep(current, is_over, takes)) {
    }
  }

  /// A target not far below the highest peaks, so that these go first. It does not depend on the
  /// budget: a larger one must not be refused what a smaller one finds. Of 0.5, 0.8, 0.9, 0.95 and
  /// 0.98 only 0.8 let the least of a chain grow as the root of its depth (budget_test.cpp).
  void aim_below(Trial& current) {
    constexpr double kNextPeak = 0.8;
    target_ = static_cast<std::size_t>(kNextPeak * static_cast<double>(current.most_alive));
    current = plan(current.dropped, current.apart);
  }

  /// Gives one value after the other another fate, or that of a neighbour in exchange, or some
  /// neighbours one fate; `takes` makes a trial the current one or leaves it. Whether any was taken
  /// and there may be more.
  template <class IsOver, class Takes>
  bool sweep(Trial& current, const IsOver& is_over, const Takes& takes) {
    constexpr std::ptrdiff_t kReach = 4;
    bool changed = false;
    const auto attempt = [&](const std::vector<Change>& changes) {
      std::optional<Trial> trial = with(current, changes);
      if (trial) changed |= takes(*trial);
    };
    for (auto one = candidates_.begin(); one != candidates_.end(); ++one) {
      const auto end = one + std::min(kReach, candidates_.end() - one);
      for (const Fate fate : {Fate::kept, Fate::made_again, Fate::made_apart}) {
        std::vector<Change> run;
        for (auto other = one; other != end; ++other) {
          run.emplace_back(&*other, fate);
          attempt(run);
        }
      }
      for (auto other = one + 1; other != end; ++other) {
        attempt({{&*one, fate_of(current, *other)}, {&*other, fate_of(current, *one)}});
      }
      if (is_over()) return false;
    }
    return changed;
  }

  static Fate fate_of(const Trial& trial, const Candidate& one) {
    if (!trial.dropped.contains(one.value)) return Fate::kept;
    return trial.apart.contains(one.value) ? Fate::made_apart : Fate::made_again;
  }

  /// The trial with these changes, considered; nothing where they change nothing.
  std::optional<Trial> with(const Trial& from, const std::vector<Change>& changes) {
    Dropped dropped = from.dropped;
    Dropped apart = from.apart;
    const auto put = [](Dropped& set, const Value* value, bool is_in) {
      is_in ? void(set.insert(value)) : void(set.erase(value));
    };
    for (const auto& [one, fate] : changes) {
      put(dropped, one->value, fate != Fate::kept);
      put(apart, one->value, fate == Fate::made_apart);
    }
    if (dropped == from.dropped && apart == from.apart) return std::nullopt;
    Trial trial = plan(std::move(dropped), std::move(apart));
    take_if_better(trial);
    return trial;
  }

  void keep_the_dearest() {
    constexpr std::size_t kTries = 64;
    std::vector<const Candidate*> dearest;
    for (const Candidate& one : candidates_) {
      if (best_.dropped.contains(one.value)) dearest.push_back(&one);
    }
    std::ranges::stable_sort(dearest, std::ranges::greater{},
                             [](const Candidate* one) { return one->density(); });
    if (dearest.size() > kTries) dearest.resize(kTries);
    for (const Candidate* one : dearest) {
      for (const Fate fate : {Fate::made_again, Fate::kept}) with(best_, {{one, fate}});
    }
  }

  Graph& graph_;
  WorkspaceBytes& workspaces_;
  std::size_t budget_ = 0;
  std::size_t target_ = kUnknown;  ///< of bytes alive, while the search shrinks
  std::vector<Node*> given_order_;
  const Node* boundary_;
  std::vector<Candidate> candidates_;
  Trial best_;
  std::size_t plans_ = 0;
  std::size_t least_bytes_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace

BudgetedArena fit_budget(Graph& graph, WorkspaceBytes& workspaces, std::size_t budget) {
  return BudgetSearch(graph, workspaces).fit(budget);
}

BudgetedArena recompute_cheap_values(Graph& graph, WorkspaceBytes& workspaces, double share) {
  return BudgetSearch(graph, workspaces).drop_cheap(share);
}

}  // namespace graft
