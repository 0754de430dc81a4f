#include "core/ops/move/scatter_rule.h"

namespace graft {
namespace {

Expr as_number(const Expr& condition, const Expr& like) {
  return cast(condition, like.dtype());
}

/// Of max and min.
std::vector<Expr> extreme_gradients(const Gradient& g, const ScatterMoves& moves) {
  const Expr data = g.x(0);
  const Expr updates = g.x(2);
  const Expr data_wins = as_number(equal(data, g.y()), data);
  const Expr update_wins = as_number(equal(updates, moves.gather(g.y())), data);
  const Expr winners = moves.scatter(data_wins, update_wins, "add");
  // Nobody attains a NaN.
  const Expr share = g.dy() / call("Max", {winners, constant_like(winners, 1.0)});
  return {share * data_wins, {}, moves.gather(share) * update_wins};
}

/// Of mul. Where a factor is 0 the quotient y / factor has no value: the product is made again with
/// 1 in the place of a zero that stands alone; with more zeros the gradient is 0.
std::vector<Expr> product_gradients(const Gradient& g, const ScatterMoves& moves) {
  const Expr data = g.x(0);
  const Expr updates = g.x(2);
  const Expr zero = constant_like(data, 0.0);
  const Expr one = constant_like(data, 1.0);
  const Expr safe_data = where(equal(data, zero), one, data);
  const Expr ddata = g.dy() * moves.scatter(safe_data, updates, "mul") / safe_data;

  const Expr is_zero = equal(updates, zero);
  const Expr zeros = moves.scatter(zeros_like(data), as_number(is_zero, data), "add");
  const Expr is_alone = call("And", {is_zero, equal(moves.gather(zeros), one)});
  const Expr others = moves.scatter(data, where(is_alone, one, updates), "mul");
  const Expr by_quotient = moves.gather(g.dy() * g.y()) / where(is_zero, one, updates);
  return {ddata, {}, where(is_alone, moves.gather(g.dy() * others), by_quotient)};
}

}  // namespace

std::vector<Expr> scatter_gradients(const Gradient& g, const ScatterMoves& moves) {
  const std::string reduction = g.attributes().get_string("reduction", "none");
  if (reduction == "max" || reduction == "min") return extreme_gradients(g, moves);
  if (reduction == "mul") return product_gradients(g, moves);
  const Expr updates = moves.gather(g.dy());
  if (reduction == "add") return {g.dy(), {}, updates};
  return {moves.scatter(g.dy(), zeros_like(updates), "none"), {}, updates};
}

}  // namespace graft
