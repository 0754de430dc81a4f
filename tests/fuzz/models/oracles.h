#pragma once

#include <string>
#include <vector>

#include "core/graph/model.h"
#include "core/runtime/plan.h"
#include "core/tensor/datum.h"

// The same computation done in other ways. What differs is a finding.
namespace graft::fuzz {

/// What a way of computing came to.
struct Outcome {
  bool succeeded = false;
  std::vector<Datum> results{};
  /// The largest finite number that was seen on the way, and whether all numbers were finite.
  double largest = 0.0;
  bool is_finite = true;
  /// The largest finite number of those that were given: its square may be infinite in f32.
  double largest_given = 0.0;
  /// Whether it failed for memory, which what is not joined with others may need more of.
  bool lacks_memory = false;
  /// The size of the smallest of all that were given or seen, but for 0.
  double smallest = 1.0;

  /// Whether rounding stays small on the way: numbers that are large somewhere lose digits
  /// everywhere behind it.
  bool is_tame() const { return is_finite && largest <= 1e3; }
  /// Whether nothing that f64 has vanishes in f32: squares of numbers near 0 do.
  bool stays_in_f32() const { return is_tame() && smallest >= 1e-15 && largest_given <= 1e15; }
};

/// Runs a graph in the newest form as sessions do, twice where it is cheap to see that the second
/// run gives what the first did.
Outcome run_planned(const Graph& graph, const std::vector<Datum>& inputs,
                    const PlanOptions& options = {});

/// Calls one node after the other by itself: no plan, no rewrites, no memory that is shared.
Outcome run_unplanned(const Graph& graph, const std::vector<Datum>& inputs);

/// The same with all numbers of 32 bits in 64: where a node makes such of its own, it fails. The
/// results are then rounded to the types of `like`.
Outcome run_in_f64(const Graph& graph, const std::vector<Datum>& inputs, const Outcome& like);

/// Throws Finding unless both succeeded with the same bits, any NaN being like any other, or both
/// failed.
void require_same_bits(const Outcome& a, const Outcome& b, const std::string& what);

/// Throws Finding where both succeeded and differ by more than rounding may explain.
void require_near(const Outcome& a, const Outcome& b, const std::string& what);

/// Whether two tensors are equal, any NaN being like any other.
bool same_bits(const Tensor& a, const Tensor& b);

}  // namespace graft::fuzz
