// A match is found by goals: a form, and the value that is to have it. `Matcher::solve` meets the
// first of a list of them, puts what it asks of operands in front of the others, and goes on; it is
// true once all are met and the rewrite's condition holds. Where there are several ways, they are
// tried one after the other, and each failure takes back what it had found. Goals lie on the stack,
// so that a look at a node allocates nothing. Start at `Matcher::solve`.
//
// Long: Matcher, for each kind of form is a few lines of one search that calls itself.
#include "core/passes/match.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>

#include "core/ops/alias.h"
#include "core/ops/infer.h"
#include "core/passes/pattern_form_internal.h"

namespace graft::passes {
namespace {

using Form = Pattern::Form;
using Kind = Form::Kind;

/// Of constants in a product, and of nodes that a `through` passes: so no search goes deep.
constexpr int kMostSteps = 16;

/// Files write constants that are no whole numbers with a few digits.
bool is_number(double found, double wanted) {
  constexpr double kDigits = 1e-5;
  if (wanted == std::round(wanted)) return found == wanted;
  return std::abs(found - wanted) <= kDigits * std::abs(wanted);
}

/// Makes no Shape, as `shape_of` does.
bool has_known_shape(const Value* value) {
  return value != nullptr && value->shape() && std::ranges::all_of(*value->shape(), &Dim::is_known);
}

}  // namespace

NodeOrder::NodeOrder(const Graph& graph) : places_(graph) {
  int index = 0;
  int updates = 0;
  for (const auto& node : graph.nodes()) {
    updates += updates_state(*node) ? 1 : 0;
    places_[*node] = {index++, updates};
  }
}

const NodeOrder& Match::order() const {
  if (!order_) order_ = std::make_unique<NodeOrder>(builder_.graph());
  return *order_;
}

const Match::Found* Match::find(const Pattern& pattern) const {
  const auto at = std::ranges::find(found_, &pattern.form(), &Found::form);
  return at == found_.end() ? nullptr : &*at;
}

Expr Match::operator[](const Pattern& pattern) const {
  const Found* const found = find(pattern);
  return found == nullptr ? Expr() : builder_.expr(found->value);
}

double Match::number(const Pattern& pattern) const {
  const Found* const found = find(pattern);
  assert(found != nullptr);
  return found->number;
}

std::vector<Step> Match::steps(const Pattern& through) const {
  std::vector<Step> steps;
  for (const Found& found : found_) {
    if (found.form != &through.form()) continue;
    steps.insert(steps.begin(), {found.value->producer(), static_cast<int>(found.number)});
  }
  return steps;
}

/// A form, and the value that is to have it; or, with `constant`, those factors of a product that
/// are still to be found in the value, and at last what the constants among them come to.
struct Goal {
  const Form* form;
  Value* value;
  const Goal* next;
  unsigned factors = 0;
  bool divides = false;    ///< the value divides in the product
  bool is_inside = false;  ///< the value is not the product itself
  int steps = 0;
  double* constant = nullptr;
};

class Matcher {
 public:
  Matcher(bool (*accept)(const Match&), Match& match) : accept_(accept), match_(match) {}

  bool solve(const Goal* goal) {
    if (goal == nullptr) return is_accepted();
    if (goal->constant != nullptr) {
      return goal->factors == 0 ? solve_constant(*goal) : solve_factors(*goal);
    }
    const Form& form = *goal->form;
    if (goal->value == nullptr) return form.kind == Kind::or_none && solve(goal->next);
    switch (form.kind) {
      case Kind::value:
        return bind(form, goal->value, 0.0, goal->next);
      case Kind::number:
      case Kind::literal:
        return solve_number(*goal);
      case Kind::node:
        return solve_node(*goal);
      case Kind::product:
        return solve_product(*goal);
      case Kind::once:
        return only_reader(goal->value) != nullptr && solve_part(*goal, 0);
      case Kind::either:
        return solve_part(*goal, 0) || solve_part(*goal, 1);
      case Kind::through:
        return solve_through(*goal);
      case Kind::opt:
      case Kind::or_none:
        return solve_part(*goal, 0);
    }
    return false;
  }

 private:
  using Found = Match::Found;

  bool is_accepted() const {
    const auto is_known = [](const Found& found) {
      return found.form->kind != Kind::value || has_known_shape(found.value);
    };
    return std::ranges::all_of(match_.found_, is_known) && (accept_ == nullptr || accept_(match_));
  }

  bool solve_part(const Goal& goal, std::size_t index) {
    const Goal part{&goal.form->parts[index].form(), goal.value, goal.next};
    return solve(&part);
  }

  const Found* find(const Form& form) const {
    const auto at = std::ranges::find(match_.found_, &form, &Found::form);
    return at == match_.found_.end() ? nullptr : &*at;
  }

  /// Goes on with what was found, and takes it back if that fails.
  template <class Go>
  bool with(const Found& found, const Go& go) {
    match_.found_.push_back(found);
    if (go()) return true;
    match_.found_.pop_back();
    return false;
  }

  bool bind(const Form& form, Value* value, double number, const Goal* next) {
    if (const Found* const found = find(form)) {
      return found->value == value && found->number == number && solve(next);
    }
    return with({&form, value, number}, [&] { return solve(next); });
  }

  bool solve_number(const Goal& goal) {
    const std::optional<double> number = scalar_of(goal.value);
    if (!number) return false;
    if (goal.form->kind == Kind::number) return bind(*goal.form, nullptr, *number, goal.next);
    return is_number(*number, goal.form->number) && solve(goal.next);
  }

  /// Some exporters write one value twice.
  static bool are_alike(const Value* a, const Value* b) {
    if (a == b) return true;
    const Node* const first = a->producer();
    const Node* const second = b->producer();
    return first != nullptr && second != nullptr && second->is(first->op_type(), first->domain()) &&
           a->output_index() == b->output_index() &&
           std::ranges::equal(first->inputs(), second->inputs()) && first->attributes.empty() &&
           second->attributes.empty();
  }

  bool solve_node(const Goal& goal) {
    const Form& form = *goal.form;
    if (const Found* const found = find(form)) {
      return are_alike(found->value, goal.value) && solve(goal.next);
    }
    const Node* const node = goal.value->producer();
    if (node == nullptr || goal.value->output_index() != 0 || !is_node(form, *node)) return false;
    return with({&form, goal.value, 0.0}, [&] {
      return solve_inputs(goal, *node, 0) ||
             (form.commutes && node->input(0) != node->input(1) && solve_inputs(goal, *node, 1));
    });
  }

  /// With `swapped` 1, the first part is to be the second input.
  bool solve_inputs(const Goal& goal, const Node& node, int swapped) {
    const std::vector<Pattern>& parts = goal.form->parts;
    std::array<Goal, Form::kMostInputs> goals;
    const Goal* next = goal.next;
    for (std::size_t i = parts.size(); i-- > 0;) {
      goals[i] = {&parts[i].form(), node.input(static_cast<int>(i) ^ swapped), next};
      next = &goals[i];
    }
    return solve(next);
  }

  bool solve_through(const Goal& goal) {
    if (solve_part(goal, 0)) return true;
    const Node* const node = goal.value->producer();
    if (node == nullptr || goal.value->output_index() != 0 || goal.steps == kMostSteps ||
        only_reader(goal.value) == nullptr) {
      return false;
    }
    for (int i = 0; i < node->input_count(); ++i) {
      if (node->input(i) == nullptr || !goal.form->step(*node, i)) continue;
      Goal before = goal;
      before.value = node->input(i);
      ++before.steps;
      const auto go = [&] { return solve_through(before); };
      if (with({goal.form, goal.value, static_cast<double>(i)}, go)) return true;
    }
    return false;
  }

  bool solve_product(const Goal& goal) {
    double constant = 1.0;
    const Goal last{.form = goal.form, .value = nullptr, .next = goal.next, .constant = &constant};
    const Goal all{.form = goal.form,
                   .value = goal.value,
                   .next = &last,
                   .factors = (1U << goal.form->factors.size()) - 1,
                   .constant = &constant};
    return solve(&all);
  }

  bool solve_constant(const Goal& goal) {
    const Form& form = *goal.form;
    if (form.scale) return bind(form.scale->form(), nullptr, *goal.constant, goal.next);
    return is_number(*goal.constant, form.number) && solve(goal.next);
  }

  bool solve_factors(const Goal& goal) {
    const Node* const node = goal.value->producer();
    if (node != nullptr && may_enter(goal) && (solve_scaled(goal, *node))) return true;
    if (std::has_single_bit(goal.factors)) return solve_factor(goal);
    return node != nullptr && may_enter(goal) && solve_split(goal, *node);
  }

  /// Products of factors that are read once are read once.
  static bool may_enter(const Goal& goal) {
    if (goal.steps == kMostSteps) return false;
    if (!goal.is_inside || only_reader(goal.value) != nullptr) return true;
    const std::vector<Form::Factor>& factors = goal.form->factors;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const bool is_wanted = (goal.factors >> i & 1U) != 0;
      if (is_wanted && factors[i].pattern.form().kind == Kind::once) return false;
    }
    return true;
  }

  /// The only one that is left is the value.
  bool solve_factor(const Goal& goal) {
    const auto index = static_cast<std::size_t>(std::countr_zero(goal.factors));
    const Form::Factor& factor = goal.form->factors[index];
    const Goal whole{&factor.pattern.form(), goal.value, goal.next};
    return factor.divides == goal.divides && solve(&whole);
  }

  /// The goal for an operand of the value.
  static Goal inside(const Goal& goal, Value* operand, bool flips) {
    Goal result = goal;
    result.value = operand;
    result.divides = goal.divides != flips;
    result.is_inside = true;
    ++result.steps;
    return result;
  }

  /// The value is a constant times or by another, or that by a constant.
  bool solve_scaled(const Goal& goal, const Node& node) {
    const bool is_quotient = node.is("Div");
    if (node.is("Reciprocal")) return solve_factors(inside(goal, node.input(0), true));
    if (!is_quotient && !node.is("Mul")) return false;
    for (const int i : {0, 1}) {
      Value* const other = node.input(1 - i);
      const std::optional<double> number = scalar_of(node.input(i));
      if (!number || !have_one_shape(other, goal.value)) continue;
      const double before = *goal.constant;
      const bool divides = goal.divides != (is_quotient && i == 1);
      *goal.constant = divides ? before / *number : before * *number;
      if (solve_factors(inside(goal, other, is_quotient && i == 0))) return true;
      *goal.constant = before;
    }
    return false;
  }

  /// Each operand of the value holds some of the factors.
  bool solve_split(const Goal& goal, const Node& node) {
    const bool is_quotient = node.is("Div");
    if (!is_quotient && !node.is("Mul")) return false;
    for (unsigned some = (goal.factors - 1) & goal.factors; some != 0;
         some = (some - 1) & goal.factors) {
      Goal left = inside(goal, node.input(0), false);
      Goal right = inside(goal, node.input(1), is_quotient);
      left.factors = some;
      right.factors = goal.factors ^ some;
      // What may be any value stands behind the other factors: those tell sooner.
      const bool left_first = std::countr_zero(left.factors) < std::countr_zero(right.factors);
      (left_first ? left : right).next = left_first ? &right : &left;
      if (solve(left_first ? &left : &right)) return true;
    }
    return false;
  }

  bool (*accept_)(const Match&);
  Match& match_;

 public:
  /// Whether the node is one of the form, whatever its inputs.
  static bool is_node(const Form& form, const Node& node) {
    return (form.type.empty() || node.is(form.type, form.domain)) &&
           (form.test == nullptr || form.test(node));
  }
};

bool may_be_root(const Pattern& pattern, const Node& node) {
  const Form& form = pattern.form();
  switch (form.kind) {
    case Kind::node:
      return form.type.empty() ? node.output() != nullptr && form.test(node)
                               : node.is(form.type, form.domain);
    case Kind::product:
      return node.is("Mul") || node.is("Div");
    case Kind::once:
      return may_be_root(form.parts[0], node);
    case Kind::either:
      return may_be_root(form.parts[0], node) || may_be_root(form.parts[1], node);
    default:
      return true;
  }
}

bool find_match(const Pattern& pattern, Value& value, bool (*accept)(const Match&), Match& match) {
  if (value.producer() == nullptr || !has_known_shape(&value)) return false;
  match.found_.clear();
  match.result_ = &value;
  match.builder_.insert_before(value.producer());
  const Goal goal{&pattern.form(), &value, nullptr};
  return Matcher(accept, match).solve(&goal);
}

Node* only_reader(const Value* value) {
  return value->uses().size() == 1 && !value->is_graph_output() ? value->uses().front().node
                                                                : nullptr;
}

std::optional<double> scalar_of(const Value* value) {
  const Tensor tensor = constant_of(value);
  if (!tensor.defined() || tensor.size() != 1) return std::nullopt;
  return to_double(tensor).front();
}

std::optional<Shape> shape_of(const Value* value) {
  return value != nullptr && value->shape() ? value->shape()->known() : std::nullopt;
}

bool have_one_shape(const Value* a, const Value* b) {
  const std::optional<Shape> shape = shape_of(a);
  return shape && shape == shape_of(b);
}

bool fits_attribute(double number, DType dtype) {
  return dtype != DType::f64 || static_cast<double>(static_cast<float>(number)) == number;
}

}  // namespace graft::passes
