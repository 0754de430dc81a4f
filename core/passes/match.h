#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/shape.h"
#include "core/graph/number_table.h"
#include "core/ops/builder.h"
#include "core/passes/pattern.h"

namespace graft::passes {

/// Where nodes stand, and how often variables are updated before them.
class NodeOrder {
 public:
  explicit NodeOrder(const Graph& graph);

  bool is_later(const Node& a, const Node& b) const { return at(a).index > at(b).index; }
  /// Whether a variable changes between the two.
  bool are_apart(const Node& a, const Node& b) const { return at(a).updates != at(b).updates; }

 private:
  struct Place {
    int index = -1;
    int updates = 0;
  };
  const Place& at(const Node& node) const {
    assert(places_[node].index >= 0);
    return places_[node];
  }

  NodeTable<Place> places_;
};

/// A node that a `through` passed, and the input by which it went on.
struct Step {
  Node* node;
  int index;
};

/// What the parts of a pattern were found to be.
class Match {
 public:
  explicit Match(Graph& graph) : builder_(graph) {}

  /// Empty where an optional part is missing.
  Expr operator[](const Pattern& pattern) const;
  bool has(const Pattern& pattern) const { return find(pattern) != nullptr; }
  /// What an any_number() is.
  double number(const Pattern& pattern) const;
  /// The node that makes the value.
  Node& node(const Pattern& pattern) const { return *(*this)[pattern].value()->producer(); }
  /// In the order in which they run.
  std::vector<Step> steps(const Pattern& through) const;
  /// The value that has the form of the whole, and the node that makes it.
  Value* result() const { return result_; }
  Node& root() const { return *result_->producer(); }
  /// Adds nodes before the root.
  Builder& builder() const { return builder_; }
  Graph& graph() const { return builder_.graph(); }
  /// Of the nodes that were there when it was first asked for.
  const NodeOrder& order() const;

 private:
  friend class Matcher;
  friend bool find_match(const Pattern&, Value&, bool (*)(const Match&), Match&);
  /// `number` is the input by which a step goes on.
  struct Found {
    const Pattern::Form* form;
    Value* value;
    double number;
  };
  const Found* find(const Pattern& pattern) const;

  mutable Builder builder_;
  Value* result_ = nullptr;
  std::vector<Found> found_;
  mutable std::unique_ptr<NodeOrder> order_;
};

/// Whether a node can be the root of such a match: a look at its type, which most fail.
bool may_be_root(const Pattern& pattern, const Node& node);

/// Whether the value, which a node makes, has the form: in all ways until `accept`, unless null,
/// takes one, which is left in `match`. The shapes of the value and of all that any() stands for
/// must be known.
bool find_match(const Pattern& pattern, Value& value, bool (*accept)(const Match&), Match& match);

// Questions about the neighbourhood of a value.

/// The node that alone reads the value, which is no output of the graph; null if there is none.
Node* only_reader(const Value* value);

/// The number of a one-element constant.
std::optional<double> scalar_of(const Value* value);

/// The shape if it is known as a whole.
std::optional<Shape> shape_of(const Value* value);

/// Whether both have shapes that are known and the same.
bool have_one_shape(const Value* a, const Value* b);

/// Attributes are f32: whether one holds the number as ops on elements of this type see it.
bool fits_attribute(double number, DType dtype);

}  // namespace graft::passes
