#include "core/ops/builder.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void check_square(const InferContext& context, int input) {
  context.require_rank(input, 2, 64);
  const SymShape* const x = context.shape(input);
  if (x == nullptr) return;
  const Dim& rows = (*x)[x->rank() - 2];
  const Dim& columns = (*x)[x->rank() - 1];
  if (rows.is_known() && columns.is_known() && rows.value() != columns.value()) {
    context.fail(ErrorKind::shape, "input is ", *x, ", wanted square matrices");
  }
}

void infer_det(InferContext& context) {
  check_square(context, 0);
  const SymShape* const x = context.shape(0);
  if (x == nullptr) return context.set_output(0, context.dtype(0));
  context.set_output(0, context.dtype(0),
                     SymShape(std::vector<Dim>(x->dims().begin(), x->dims().end() - 2)));
}

void infer_cofactors(InferContext& context) {
  check_square(context, 0);
  context.copy_type(0);
}

/// d det / dx is the matrix of cofactors.
std::vector<Expr> det_rule(const Gradient& g) {
  return {call_internal("Cofactors", {g.x()}) * unsqueeze(g.dy(), {-2, -1})};
}

std::vector<Sample> det_samples() {
  return {
      {"two", {{{2, 2}}}},
      {"batch", {{{3, 2, 4, 4}}}},
      {"one", {{{3, 1, 1}}}},
      {"singular", {{.shape = {3, 3}, .values = {1, 2, 3, 2, 4, 6, 1, 0, 1}}}},
      {"rank_one", {{.shape = {3, 3}, .values = {1, 2, 3, 2, 4, 6, 3, 6, 9}}}},
      {"no_rows", {{{2, 0, 0}}}},
      {"no_matrices", {{{0, 3, 3}}}},
      {"many", {{{300, 5, 5}}}},
  };
}

}  // namespace

/// Det, and Cofactors: element (i, j) is (-1)^(i+j) times the determinant without row i and column
/// j, also where the matrix is singular.
void register_det(OpRegistry& registry) {
  registry.add({.name = "Det",
                .since = {{11}, {22, "bfloat16"}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .infer = infer_det,
                .backward = det_rule,
                .samples = det_samples});
  registry.add({.name = "Cofactors",
                .domain = kInternalDomain,
                .inputs = {{"x"}},
                .outputs = {{"y"}},
                .infer = infer_cofactors,
                .backward = NotDifferentiable{"second derivatives of Det are not offered"},
                .samples = det_samples});
}

}  // namespace graft
