#pragma once

#include <unordered_set>
#include <vector>

#include "core/runtime/budget_candidates.h"

namespace graft {

/// Values of the forward part that are computed again instead of kept.
using Dropped = std::unordered_set<const Value*>;

/// The choices of what to drop that two numbers span: how dear a value may be, by cost a byte (its
/// density), and after how many bytes one is kept all the same.
class BudgetChoices {
 public:
  /// The graph as for fit_budget; it must outlive this and keep its forward part.
  explicit BudgetChoices(const Graph& graph)
      : graph_(graph), candidates_(budget_candidates(graph)) {}

  const std::vector<Candidate>& candidates() const { return candidates_; }

  /// The densities to try, lowest first: each admits about the same number of bytes more.
  std::vector<double> densities() const;

  /// The bytes of all values up to that density that the backward part reads.
  double bytes_up_to(double density) const;

  /// All values up to that density, but one whenever `segment_bytes` have come together. At a cut
  /// no other dropped value is still to be read by the forward part: what is kept there cuts the
  /// chain of copies through.
  Dropped choose(double density, double segment_bytes, bool only_at_cuts) const;

  /// All values up to each density at which the copies cost no more than `share` of the step, the
  /// lowest first.
  std::vector<Dropped> cheap(double share) const;

  /// The dearest of these, at most `most`, the dearest first.
  std::vector<const Candidate*> dearest(const Dropped& dropped, std::size_t most) const;

 private:
  /// Of one copy of each node that makes a dropped value which is read late, or which another copy
  /// reads.
  double cost_of_copies(const Dropped& dropped) const;

  const Graph& graph_;
  std::vector<Candidate> candidates_;
};

}  // namespace graft
