// Activations that exporters spell out in simpler ops. A match starts at the op in the middle (Erf,
// Tanh, Sigmoid), reads its operand, and follows the products behind it.
#include <cmath>
#include <numbers>
#include <ranges>

#include "core/ops/builder.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

struct Match {
  Value* x;
  Value* result;
  std::string_view op;
  Attributes attributes{};
};

/// Constants in files have a few digits.
bool is_near(double number, double wanted) {
  return std::abs(number - wanted) <= 1e-5 * std::abs(wanted);
}

Value* other_operand(const Node& node, const Value* value) {
  return node.input(node.input(0) == value ? 1 : 0);
}

Node* only_reader(const Value* value, std::string_view op) {
  Node* const node = passes::only_reader(value);
  return node != nullptr && node->is(op) ? node : nullptr;
}

/// The value without its constant factors.
Value* without_factors(Value* value, double& factor) {
  while (skip_factor(value, factor)) {
  }
  return value;
}

/// x times (1 + t) times 1/2, in any order: the result.
Value* half_gate(const Value* t, const Value* x) {
  const Node* node = only_reader(t, "Add");
  const std::optional<double> one =
      node == nullptr ? std::nullopt : scalar_of(other_operand(*node, t));
  if (!one || !is_near(*one, 1.0)) return nullptr;
  Value* result = node->output();
  double factor = 1.0;
  bool has_x = false;
  while (!has_x || !is_near(factor, 0.5)) {
    node = only_reader(result, "Mul");
    if (node == nullptr || !have_one_shape(result, node->output())) return nullptr;
    Value* const other = other_operand(*node, result);
    if (const std::optional<double> number = scalar_of(other)) {
      factor *= *number;
    } else if (!has_x && without_factors(other, factor) == x) {
      has_x = true;
    } else {
      return nullptr;
    }
    result = node->output();
  }
  return result;
}

std::optional<Match> match_gelu(const Node& erf) {
  double factor = 1.0;
  Value* const x = without_factors(erf.input(0), factor);
  if (!is_near(factor, 1 / std::numbers::sqrt2)) return std::nullopt;
  Value* const result = half_gate(erf.output(), x);
  if (result == nullptr || !have_one_shape(x, result)) return std::nullopt;
  return Match{x, result, "Gelu"};
}

bool is_cube(const Value* value, const Value* x) {
  const Node* const node = value->producer();
  if (node == nullptr) return false;
  if (node->is("Pow")) return node->input(0) == x && scalar_of(node->input(1)) == 3.0;
  if (!node->is("Mul")) return false;
  for (const int i : {0, 1}) {
    const Node* const square = node->input(i)->producer();
    if (node->input(1 - i) == x && square != nullptr && square->is("Mul") &&
        square->input(0) == x && square->input(1) == x) {
      return true;
    }
  }
  return false;
}

/// tanh(sqrt(2/pi) (x + 0.044715 x^3))
std::optional<Match> match_tanh_gelu(const Node& tanh) {
  const double root = std::sqrt(2 / std::numbers::pi);
  double factor = 1.0;
  const Node* const sum = without_factors(tanh.input(0), factor)->producer();
  if (sum == nullptr || !sum->is("Add") || !is_near(factor, root)) return std::nullopt;
  for (const int i : {0, 1}) {
    Value* const x = sum->input(i);
    double share = 1.0;
    const Value* const cube = without_factors(sum->input(1 - i), share);
    if (!is_near(share, 0.044715) || !is_cube(cube, x)) continue;
    Value* const result = half_gate(tanh.output(), x);
    if (result != nullptr && have_one_shape(x, result)) {
      return Match{x, result, "Gelu", {{"approximate", "tanh"}}};
    }
  }
  return std::nullopt;
}

/// x sigmoid(alpha x)
std::optional<Match> match_swish(const Node& sigmoid) {
  const Node* const product = only_reader(sigmoid.output(), "Mul");
  if (product == nullptr) return std::nullopt;
  Value* const x = other_operand(*product, sigmoid.output());
  double alpha = 1.0;
  Value* operand = sigmoid.input(0);
  while (operand != x && skip_factor(operand, alpha)) {
  }
  if (operand != x || !have_one_shape(x, product->output())) return std::nullopt;
  if (!fits_attribute(alpha, x->dtype())) return std::nullopt;
  return Match{x, product->output(), "Swish", {{"alpha", static_cast<float>(alpha)}}};
}

std::optional<Match> match(const Node& node) {
  if (node.is("Erf")) return match_gelu(node);
  if (node.is("Tanh")) return match_tanh_gelu(node);
  if (node.is("Sigmoid")) return match_swish(node);
  return std::nullopt;
}

void name(Graph& graph, const Match& match) {
  Builder builder(graph, match.result->producer());
  const Expr y = call(match.op, {builder.expr(match.x)}, match.attributes);
  graph.replace_all_uses(match.result, y.value());
}

}  // namespace

bool name_activations(Graph& graph) {
  std::vector<Match> found;
  for (const auto& node : graph.nodes()) {
    if (std::optional<Match> one = match(*node)) found.push_back(*std::move(one));
  }
  // The last first: an earlier one is then replaced in what reads it, too.
  for (const Match& one : std::views::reverse(found)) name(graph, one);
  if (!found.empty()) eliminate_dead(graph);
  verify_in_debug(graph);
  return !found.empty();
}

}  // namespace graft::passes
