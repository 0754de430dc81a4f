#include <algorithm>
#include <cmath>
#include <map>

#include "core/ops/ml/ml_scores.h"
#include "core/ops/ml/ml_tree.h"

namespace graft {
namespace {

using Mode = TreeEnsemble::Mode;

/// An ints attribute of exactly `count` entries, or, where it may be left out, zeros.
std::vector<std::int64_t> ints(const Node& node, const std::string& name, std::size_t count,
                               bool optional = false) {
  std::vector<std::int64_t> values = node.attributes.get_ints(name);
  if (optional && values.empty()) values.resize(count);
  check_length(node, name, values.size(), count);
  return values;
}

std::int64_t checked_index(const Node& node, std::int64_t index, std::size_t count) {
  if (index < 0 || index >= static_cast<std::int64_t>(count)) {
    fail(ErrorKind::model, node.label(), ": refers to entry ", index, " of ", count);
  }
  return index;
}

/// Each branch stands in one tree, and has one way to it: so every way ends.
void check_trees(const Node& node, const TreeEnsemble& trees) {
  std::vector<bool> seen(trees.branches.size());
  std::vector<std::int64_t> open = trees.roots;
  while (!open.empty()) {
    const std::int64_t at = open.back();
    open.pop_back();
    if (at < 0) continue;
    if (seen[static_cast<std::size_t>(at)]) {
      fail(ErrorKind::model, node.label(), ": two ways lead to tree node ", at);
    }
    seen[static_cast<std::size_t>(at)] = true;
    const TreeEnsemble::Branch& branch = trees.branches[static_cast<std::size_t>(at)];
    open.push_back(branch.if_true);
    open.push_back(branch.if_false);
  }
}

void add_feature(const Node& node, TreeEnsemble& trees, std::int64_t feature) {
  if (feature < 0) fail(ErrorKind::model, node.label(), ": feature ", feature, " is negative");
  trees.last_feature = std::max(trees.last_feature, feature);
}

/// Lists of members, each ended by NaN (the last one may go without).
std::vector<std::vector<double>> member_sets(const Node& node) {
  std::vector<std::vector<double>> sets;
  bool is_open = false;
  for (const double value : numbers_attribute(node, "membership_values")) {
    if (!is_open) sets.emplace_back();
    is_open = !std::isnan(value);
    if (is_open) sets.back().push_back(value);
  }
  return sets;
}

/// An entry of the old encoding by its tree and its id in that tree.
using NodeKey = std::pair<std::int64_t, std::int64_t>;

/// "BRANCH_LEQ", ...; -1 for "LEAF".
int mode_number(const Node& node, const std::string& name) {
  static const std::vector<std::string> kNames{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                               "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  if (name == "LEAF") return -1;
  const auto at = std::ranges::find(kNames, name);
  if (at == kNames.end()) fail(ErrorKind::model, node.label(), ": mode '", name, "' is unknown");
  return static_cast<int>(at - kNames.begin());
}

/// Reads the encoding that lists leaves among the nodes.
class OldReader {
 public:
  OldReader(const Node& node, std::int64_t targets) : node_(node), targets_(targets) {}

  TreeEnsemble read(const std::string& prefix) {
    const std::vector<std::int64_t> tree_ids = node_.attributes.get_ints("nodes_treeids");
    read_places(tree_ids);
    read_branches(tree_ids);
    read_weights(prefix);
    check_trees(node_, trees_);
    return std::move(trees_);
  }

 private:
  /// Numbers branches and leaves; the first node of each tree is its root.
  void read_places(const std::vector<std::int64_t>& tree_ids) {
    const std::size_t count = tree_ids.size();
    const Attribute* const found = node_.attributes.find("nodes_modes");
    const auto* const names =
        found == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&found->value);
    if (names == nullptr) fail(ErrorKind::model, node_.label(), ": has no nodes_modes");
    check_length(node_, "nodes_modes", names->size(), count);
    const std::vector<std::int64_t> ids = ints(node_, "nodes_nodeids", count);
    for (std::size_t i = 0; i < count; ++i) {
      modes_.push_back(mode_number(node_, (*names)[i]));
      std::int64_t place = 0;
      if (modes_.back() < 0) {
        place = ~static_cast<std::int64_t>(trees_.leaves.size());
        trees_.leaves.emplace_back();
      } else {
        place = branch_count_++;
      }
      if (!places_.emplace(NodeKey(tree_ids[i], ids[i]), place).second) {
        fail(ErrorKind::model, node_.label(), ": node ", ids[i], " of tree ", tree_ids[i],
             " is there twice");
      }
      if (i == 0 || tree_ids[i] != tree_ids[i - 1]) trees_.roots.push_back(place);
    }
  }

  std::int64_t place(std::int64_t tree, std::int64_t id) const {
    const auto at = places_.find({tree, id});
    if (at == places_.end()) {
      fail(ErrorKind::model, node_.label(), ": tree ", tree, " has no node ", id);
    }
    return at->second;
  }

  void read_branches(const std::vector<std::int64_t>& tree_ids) {
    const std::size_t count = tree_ids.size();
    const auto features = ints(node_, "nodes_featureids", count);
    const auto if_true = ints(node_, "nodes_truenodeids", count);
    const auto if_false = ints(node_, "nodes_falsenodeids", count);
    const auto missing = ints(node_, "nodes_missing_value_tracks_true", count, true);
    const std::vector<double> values = numbers_attribute(node_, "nodes_values");
    check_length(node_, "nodes_values", values.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      if (modes_[i] < 0) continue;
      add_feature(node_, trees_, features[i]);
      trees_.branches.push_back({static_cast<Mode>(modes_[i]), missing[i] != 0, features[i],
                                 values[i], place(tree_ids[i], if_true[i]),
                                 place(tree_ids[i], if_false[i]), 0});
    }
  }

  void read_weights(const std::string& prefix) {
    const std::vector<double> weights = numbers_attribute(node_, prefix + "_weights");
    const auto trees = ints(node_, prefix + "_treeids", weights.size());
    const auto ids = ints(node_, prefix + "_nodeids", weights.size());
    const auto targets = ints(node_, prefix + "_ids", weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::int64_t at = place(trees[i], ids[i]);
      if (at >= 0) {
        fail(ErrorKind::model, node_.label(), ": node ", ids[i], " of tree ", trees[i],
             " has a weight and is no leaf");
      }
      checked_index(node_, targets[i], static_cast<std::size_t>(targets_));
      trees_.leaves[static_cast<std::size_t>(~at)].weights.push_back({targets[i], weights[i]});
    }
  }

  const Node& node_;
  std::int64_t targets_;
  TreeEnsemble trees_;
  std::vector<int> modes_;
  std::int64_t branch_count_ = 0;
  std::map<NodeKey, std::int64_t> places_;
};

std::vector<double> tensor_attribute(const Node& node, const std::string& name) {
  const Tensor tensor = node.attributes.get_tensor(name);
  return tensor.defined() ? to_double(tensor) : std::vector<double>();
}

}  // namespace

bool TreeEnsemble::goes_true(const Branch& branch, double x) const {
  switch (branch.mode) {
    case Mode::leq:
      return x <= branch.split;
    case Mode::lt:
      return x < branch.split;
    case Mode::gte:
      return x >= branch.split;
    case Mode::gt:
      return x > branch.split;
    case Mode::eq:
      return x == branch.split;
    case Mode::neq:
      return x != branch.split;
    case Mode::member:
      return std::ranges::find(sets[branch.set], x) != sets[branch.set].end();
  }
  return false;
}

std::vector<double> numbers_attribute(const Node& node, const std::string& name) {
  const Attribute* const found = node.attributes.find(name);
  if (found != nullptr && std::holds_alternative<Tensor>(found->value)) {
    return tensor_attribute(node, name);
  }
  const std::vector<float> floats = node.attributes.get_floats(name);
  if (!floats.empty()) return {floats.begin(), floats.end()};
  return tensor_attribute(node, name + "_as_tensor");
}

TreeEnsemble tree_ensemble(const Node& node, std::int64_t targets) {
  TreeEnsemble trees;
  trees.sets = member_sets(node);
  const std::vector<double> weights = numbers_attribute(node, "leaf_weights");
  const auto leaf_targets = ints(node, "leaf_targetids", weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    checked_index(node, leaf_targets[i], static_cast<std::size_t>(targets));
    trees.leaves.push_back({{{leaf_targets[i], weights[i]}}});
  }
  const std::vector<double> modes = numbers_attribute(node, "nodes_modes");
  const std::size_t count = modes.size();
  const std::vector<double> splits = numbers_attribute(node, "nodes_splits");
  check_length(node, "nodes_splits", splits.size(), count);
  const auto features = ints(node, "nodes_featureids", count);
  const auto missing = ints(node, "nodes_missing_value_tracks_true", count, true);
  const auto true_leaves = ints(node, "nodes_trueleafs", count);
  const auto false_leaves = ints(node, "nodes_falseleafs", count);
  const auto if_true = ints(node, "nodes_truenodeids", count);
  const auto if_false = ints(node, "nodes_falsenodeids", count);
  const auto place = [&](bool is_leaf, std::int64_t id) {
    const std::int64_t at = checked_index(node, id, is_leaf ? trees.leaves.size() : count);
    return is_leaf ? ~at : at;
  };
  std::size_t next_set = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= static_cast<double>(Mode::member))) {
      fail(ErrorKind::model, node.label(), ": mode ", modes[i], " is unknown");
    }
    add_feature(node, trees, features[i]);
    const auto mode = static_cast<Mode>(modes[i]);
    const std::size_t set = mode == Mode::member ? next_set++ : 0;
    trees.branches.push_back({mode, missing[i] != 0, features[i], splits[i],
                              place(true_leaves[i] != 0, if_true[i]),
                              place(false_leaves[i] != 0, if_false[i]), set});
  }
  check_length(node, "membership_values (lists)", trees.sets.size(), next_set);
  for (const std::int64_t root : node.attributes.get_ints("tree_roots")) {
    trees.roots.push_back(checked_index(node, root, count));
  }
  check_trees(node, trees);
  return trees;
}

TreeEnsemble old_tree_ensemble(const Node& node, const std::string& prefix, std::int64_t targets) {
  return OldReader(node, targets).read(prefix);
}

}  // namespace graft
