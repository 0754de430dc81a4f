#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/node.h"

namespace graft {

/// An ensemble of decision trees in one array, whichever of ONNX-ML's encodings it comes from.
struct TreeEnsemble {
  enum class Mode : std::uint8_t { leq, lt, gte, gt, eq, neq, member };

  struct Branch {
    Mode mode = Mode::leq;
    bool missing_is_true = false;
    std::int64_t feature = 0;
    double split = 0;
    /// Where to go on; a negative number is leaf ~n.
    std::int64_t if_true = 0, if_false = 0;
    /// Of mode `member`: which set.
    std::size_t set = 0;
  };
  struct Weight {
    std::int64_t target;
    double value;
  };
  struct Leaf {
    std::vector<Weight> weights;
  };

  std::vector<std::int64_t> roots;  ///< like if_true
  std::vector<Branch> branches;
  std::vector<Leaf> leaves;
  std::vector<std::vector<double>> sets;
  std::int64_t last_feature = -1;  ///< the largest that a branch reads; -1 without branches

  /// The leaf that a sample reaches.
  template <class T>
  const Leaf& leaf_of(std::int64_t root, const T* sample) const {
    std::int64_t at = root;
    while (at >= 0) {
      const Branch& branch = branches[static_cast<std::size_t>(at)];
      const auto x = static_cast<double>(sample[branch.feature]);
      const bool is_true = x != x ? branch.missing_is_true : goes_true(branch, x);
      at = is_true ? branch.if_true : branch.if_false;
    }
    return leaves[static_cast<std::size_t>(~at)];
  }

  bool goes_true(const Branch& branch, double x) const;
};

/// From attributes nodes_* and leaf_* of TreeEnsemble, whose targets are in [0, targets).
/// Throws Error{model} unless every way ends at a leaf.
TreeEnsemble tree_ensemble(const Node& node, std::int64_t targets);

/// From attributes nodes_* and <prefix>_treeids, _nodeids, _ids, _weights of TreeEnsembleRegressor
/// ("target") and TreeEnsembleClassifier ("class").
TreeEnsemble old_tree_ensemble(const Node& node, const std::string& prefix, std::int64_t targets);

/// Attribute `name`, or `name`_as_tensor, as doubles; empty when there is neither.
std::vector<double> numbers_attribute(const Node& node, const std::string& name);

}  // namespace graft
