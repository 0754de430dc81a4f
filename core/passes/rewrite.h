#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/for_tests.h"
#include "core/graph/graph.h"
#include "core/ops/builder.h"
#include "core/passes/match.h"
#include "core/passes/pattern.h"

namespace graft::passes {

/// One value an output: what takes the place of a match, or what a sample puts out.
class Results {
 public:
  /// None: nodes were changed in place.
  Results() = default;
  Results(Expr one) : list_{one} {}  // NOLINT(google-explicit-constructor): return y
  Results(std::vector<Expr> list) : list_(std::move(list)) {}  // NOLINT(*-explicit-constructor)
  Results(std::initializer_list<Expr> list) : list_(list) {}

  const std::vector<Expr>& list() const { return list_; }

 private:
  std::vector<Expr> list_;
};

/// The graph of a sample under construction, and what enters it.
class SampleNet {
 public:
  /// Its floats are of that type.
  SampleNet(Graph& graph, DType dtype) : builder_(graph), dtype_(dtype) {}

  /// What the sweep gives random numbers: floats from -1 to 1, or bools.
  Expr input(const Shape& shape, std::optional<DType> dtype = {});
  /// What changes between runs, ones at first.
  Expr variable(const Shape& shape);
  /// A constant.
  Expr number(double value, std::optional<DType> dtype = {});
  /// Constants in even steps from `first` to 1 above it.
  Expr constant(const Shape& shape, double first = 0.5);

 private:
  Builder builder_;
  DType dtype_;
};

/// A graph that holds a match once.
struct RewriteSample {
  /// Unique within the rewrite, snake_case.
  std::string_view name;
  ForTests<Results(SampleNet&)> make;
};

/// A rewrite as data. The sweep (tests/sweep) runs each sample before and after it, under other
/// names, with operands swapped and nodes in another order, and compares values and gradients.
struct Rewrite {
  /// Unique, snake_case.
  std::string_view name;
  /// The first output of the root, which is the last node of the match.
  Pattern match;
  /// What else has to hold; null: nothing. The shapes of any() and of the result are known.
  bool (*where)(const Match& match) = nullptr;
  /// Adds nodes before the root, whose outputs give what takes the place of the root's; or changes
  /// nodes in place. It removes none: what nobody reads any more goes by itself.
  std::function<Results(const Match& match)> to;
  std::vector<RewriteSample> samples;
};

/// Applies the rewrites wherever they match, the later nodes first and the first rewrite that fits
/// to each; returns whether any did. Outputs of the graph keep their names. The rewrites are among
/// those of rewrite_passes().
bool rewrite(Graph& graph, std::span<const Rewrite> rewrites);

}  // namespace graft::passes
