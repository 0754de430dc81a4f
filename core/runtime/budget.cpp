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

#include "core/base/memory_use.h"
#include "core/graph/order.h"
#include "core/ops/alias.h"
#include "core/ops/cost.h"
#include "core/runtime/budget_choices.h"

namespace graft {
namespace {

constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

enum class Fate {
  kept,
  made_again,  ///< once, before the first late reader
  made_apart,  ///< anew before each late reader
};
using Change = std::pair<const Candidate*, Fate>;

/// What to drop, and what the step without it needs.
struct Trial {
  Dropped dropped;
  Dropped apart;                 ///< of these, those made anew for each reader
  std::size_t bytes = kUnknown;  ///< of the arena, if it was placed
  std::size_t most_alive = 0;    ///< at one step
  double excess = 0;             ///< over the target, of all steps together
  double cost = std::numeric_limits<double>::infinity();

  Fate fate_of(const Candidate& one) const {
    if (!dropped.contains(one.value)) return Fate::kept;
    return apart.contains(one.value) ? Fate::made_apart : Fate::made_again;
  }
};

/// The trial's choice with these changes.
Trial with_changes(const Trial& from, const std::vector<Change>& changes) {
  Trial to{.dropped = from.dropped, .apart = from.apart};
  const auto put = [](Dropped& set, const Value* value, bool is_in) {
    is_in ? void(set.insert(value)) : void(set.erase(value));
  };
  for (const auto& [one, fate] : changes) {
    put(to.dropped, one->value, fate != Fate::kept);
    put(to.apart, one->value, fate == Fate::made_apart);
  }
  return to;
}

/// Puts copies into the graph, with their workspaces, and takes them out again.
class Copies {
 public:
  Copies(Graph& graph, WorkspaceBytes& workspaces)
      : graph_(graph), workspaces_(workspaces), boundary_(graph.outputs().front()->producer()) {}

  std::vector<passes::Repeat> put_in(const Dropped& dropped, const Dropped& apart) {
    if (dropped.empty()) return {};
    std::vector<passes::Repeat> repeats = passes::recompute(graph_, boundary_, dropped, apart);
    for (const passes::Repeat& one : repeats) {
      const std::size_t bytes = workspaces_[*one.original];
      workspaces_[*one.node] = bytes;
    }
    return repeats;
  }

  void take_out(const std::vector<passes::Repeat>& repeats) {
    passes::remove_repeats(graph_, repeats);
  }

 private:
  Graph& graph_;
  WorkspaceBytes& workspaces_;
  const Node* boundary_;
};

class BudgetSearch {
 public:
  BudgetSearch(Graph& graph, WorkspaceBytes& workspaces)
      : graph_(graph),
        workspaces_(workspaces),
        given_order_(node_order(graph)),
        copies_(graph, workspaces),
        choices_(graph) {}

  BudgetedArena fit(std::size_t budget) {
    budget_ = budget;
    consider({});
    for (const double density : choices_.densities()) {
      try_checkpoints(density);
      if (best_.bytes <= budget_) break;
    }
    if (best_.bytes > budget_) shrink();
    if (best_.bytes > budget_) {
      reorder(graph_, given_order_);
      fail(ErrorKind::memory, "the training step needs at least ", least_bytes_,
           " bytes for activations, gradients and scratch memory, though the backward part "
           "computes again what it can; the budget is ",
           size_text(budget_));
    }
    keep_the_dearest();
    cheapen();
    return take_best();
  }

  /// Drops all values up to the highest density at which the copies cost no more than `share` of
  /// the step, or up to a lower one that is as good, if that makes the arena smaller.
  BudgetedArena drop_cheap(double share) {
    std::vector<Dropped> choices = choices_.cheap(share);
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
  BudgetedArena take_best() {
    std::vector<passes::Repeat> repeats = copies_.put_in(best_.dropped, best_.apart);
    return {order_and_plan(graph_, workspaces_), std::move(repeats)};
  }

  void try_checkpoints(double density) {
    const double total = choices_.bytes_up_to(density);
    constexpr double kStep = 1.5;
    constexpr double kMostSegments = 300;
    for (const bool only_at_cuts : {true, false}) {
      for (double segments = 1; segments < kMostSegments; segments *= kStep) {
        consider(choices_.choose(density, total / segments, only_at_cuts));
      }
    }
  }

  /// Plans the step without these values; its graph is afterwards as it was.
  Trial plan(Dropped dropped, Dropped apart = {}) {
    const std::vector<passes::Repeat> repeats = copies_.put_in(dropped, apart);
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
    copies_.take_out(repeats);
    return trial;
  }

  /// A plan that fits beats one that does not; then cost counts, or bytes.
  void consider(Dropped dropped) { take_if_better(plan(std::move(dropped))); }

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
    const std::vector<Candidate>& candidates = choices_.candidates();
    for (auto one = candidates.begin(); one != candidates.end(); ++one) {
      const auto end = one + std::min(kReach, candidates.end() - one);
      for (const Fate fate : {Fate::kept, Fate::made_again, Fate::made_apart}) {
        std::vector<Change> run;
        for (auto other = one; other != end; ++other) {
          run.emplace_back(&*other, fate);
          attempt(run);
        }
      }
      for (auto other = one + 1; other != end; ++other) {
        attempt({{&*one, current.fate_of(*other)}, {&*other, current.fate_of(*one)}});
      }
      if (is_over()) return false;
    }
    return changed;
  }

  /// The trial with these changes, considered; nothing where they change nothing.
  std::optional<Trial> with(const Trial& from, const std::vector<Change>& changes) {
    Trial next = with_changes(from, changes);
    if (next.dropped == from.dropped && next.apart == from.apart) return std::nullopt;
    Trial trial = plan(std::move(next.dropped), std::move(next.apart));
    take_if_better(trial);
    return trial;
  }

  void keep_the_dearest() {
    constexpr std::size_t kTries = 64;
    for (const Candidate* one : choices_.dearest(best_.dropped, kTries)) {
      for (const Fate fate : {Fate::made_again, Fate::kept}) with(best_, {{one, fate}});
    }
  }

  Graph& graph_;
  WorkspaceBytes& workspaces_;
  std::size_t budget_ = 0;
  std::size_t target_ = kUnknown;  ///< of bytes alive, while the search shrinks
  std::vector<Node*> given_order_;
  Copies copies_;
  BudgetChoices choices_;
  Trial best_;
  std::size_t plans_ = 0;
  std::size_t least_bytes_ = kUnknown;
};

}  // namespace

BudgetedArena fit_budget(Graph& graph, WorkspaceBytes& workspaces, std::size_t budget) {
  return BudgetSearch(graph, workspaces).fit(budget);
}

BudgetedArena recompute_cheap_values(Graph& graph, WorkspaceBytes& workspaces, double share) {
  return BudgetSearch(graph, workspaces).drop_cheap(share);
}

}  // namespace graft
