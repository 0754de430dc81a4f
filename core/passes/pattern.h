#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/graph/node.h"

namespace graft::passes {

// The language in which rewrites say what they look for. A pattern reads as the formula that it
// matches; what exporters write in several ways is known here, once:
//
//   const Pattern x = any();
//   const Pattern alpha = any_number();
//   const Pattern swish = x * once(sigmoid(scaled(x, alpha)));

/// Whether the node is one that is looked for.
using NodeTest = bool (*)(const Node& node);
/// Whether what is looked for may be found behind input `index` of the node.
using StepTest = bool (*)(const Node& node, int index);

/// What a value may look like: which node made it, of what, and so on, up to values that may be
/// any. Copies are the same pattern. Where one stands twice in a formula, it is one value, or is
/// made twice in the same way.
class Pattern {
 public:
  struct Form;

  /// The one-element constant: whole numbers exactly, others to the few digits that files have.
  Pattern(double number);  // NOLINT(google-explicit-constructor): 1.0 + x
  explicit Pattern(Form form);

  const Form& form() const { return *form_; }

 private:
  std::shared_ptr<const Form> form_;
};

/// Any value.
Pattern any();
/// Any constant of one element.
Pattern any_number();
/// The first output of a node of the standard domain. Inputs beyond those given may be any, and so
/// may attributes, of which `test` knows more.
Pattern op(std::string_view type, std::vector<Pattern> inputs = {}, NodeTest test = nullptr);
/// The same of Graft's own domain.
Pattern internal_op(std::string_view type, std::vector<Pattern> inputs = {},
                    NodeTest test = nullptr);
/// The same of any op that passes the test.
Pattern op_where(NodeTest test, std::vector<Pattern> inputs);

/// A value that one node alone reads, and that is no output of the graph.
Pattern once(const Pattern& value);
/// The first of the two that fits.
Pattern either(const Pattern& first, const Pattern& second);
/// An input that may be left out; for `op`.
Pattern or_none(const Pattern& value);
/// An operand of + or * that may be missing together with its operator; if it is there, nothing
/// else reads the other operand.
Pattern opt(const Pattern& operand);
/// `start`, or what nodes made of it one behind another that each pass the test and alone read the
/// one before: `Match::steps` lists them.
Pattern through(StepTest test, const Pattern& start);
/// `value`, or what views show of it, which nothing else reads.
Pattern through_views(const Pattern& value);
/// `value` times and by constants; `factor`, from any_number(), takes them all in.
Pattern scaled(const Pattern& value, const Pattern& factor);

/// Sums and products match in any order of their operands. Products, to which quotients belong,
/// also match however their factors are grouped and wherever constants stand among them, whose
/// product has to be that of the formula's numbers: x / y is x * (1 / y) and x * Reciprocal(y),
/// too. Where a factor is read once, so are the products of which it becomes part.
Pattern operator+(const Pattern& a, const Pattern& b);
Pattern operator-(const Pattern& a, const Pattern& b);
Pattern operator*(const Pattern& a, const Pattern& b);
Pattern operator/(const Pattern& a, const Pattern& b);
Pattern sqrt(const Pattern& x);
Pattern sigmoid(const Pattern& x);
/// As a power or a product.
Pattern square(const Pattern& x);
Pattern cube(const Pattern& x);

}  // namespace graft::passes
