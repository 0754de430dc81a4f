#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/ops/expr.h"

namespace graft {

/// What a gradient rule sees of one node: its inputs x, outputs y, and the gradients dy of the loss
/// with respect to the outputs. All shapes are known.
class Gradient {
 public:
  /// `output_gradients` has one entry an output; empty where nothing flows back.
  Gradient(const Node& node, Builder& builder, std::vector<Expr> output_gradients,
           std::vector<bool> needed);

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  Builder& builder() const { return builder_; }
  int input_count() const { return node_.input_count(); }
  int output_count() const { return node_.output_count(); }

  /// Empty when the input is left out.
  Expr x(int index = 0) const;
  Expr y(int index = 0) const;
  /// Zeros of the output's shape where nothing flows back; empty for a left-out output.
  Expr dy(int index = 0) const;
  bool has_dy(int index) const;
  /// Whether the caller wants the gradient of this input. Rules may ignore it: what nobody reads
  /// is eliminated.
  bool needs(int index) const { return needed_[static_cast<std::size_t>(index)]; }

 private:
  const Node& node_;
  Builder& builder_;
  std::vector<Expr> output_gradients_;
  std::vector<bool> needed_;
};

/// Returns one gradient an input, in order; missing entries at the end and empty ones mean "none".
/// A gradient may have the broadcast shape: the engine sums it to the input's shape.
using Rule = std::vector<Expr> (*)(const Gradient& gradient);

/// Writes the node as simpler ops: returns one replacement an output. Gradients come from those.
struct Decomposition {
  std::vector<Expr> (*expand)(const Node& node, Builder& builder);
};

/// The op has no useful gradient, and why: shown to the user.
struct NotDifferentiable {
  std::string_view why;
};

/// How an op is differentiated.
class Backward {
 public:
  Backward(Rule way) : how_(way) {}               // NOLINT: reads as the row
  Backward(Decomposition way) : how_(way) {}      // NOLINT
  Backward(NotDifferentiable way) : how_(way) {}  // NOLINT

  /// Null when another way was given.
  const Rule* rule() const { return std::get_if<Rule>(&how_); }
  const Decomposition* decomposition() const { return std::get_if<Decomposition>(&how_); }
  const NotDifferentiable* refusal() const { return std::get_if<NotDifferentiable>(&how_); }
  /// "rule", "decomposition", "none": for docs.
  std::string_view kind() const;

 private:
  std::variant<Rule, Decomposition, NotDifferentiable> how_;
};

}  // namespace graft
