#include "optim/clip.h"

#include "core/ops/expr.h"

namespace graft {
namespace {

void check_limit(float limit, std::string_view what) {
  if (!(limit > 0.0F)) fail(ErrorKind::argument, what, " is ", limit, ", wanted above 0");
}

std::vector<Expr> clip_values(const std::vector<Expr>& gradients, float limit) {
  std::vector<Expr> clipped;
  for (const Expr& g : gradients) {
    clipped.push_back(call("Clip", {g, constant_like(g, -limit), constant_like(g, limit)}));
  }
  return clipped;
}

std::vector<Expr> clip_norm(const std::vector<Expr>& gradients, float limit) {
  constexpr double kEpsilon = 1e-6;
  Expr total;
  for (const Expr& g : gradients) {
    const Expr sum = call("ReduceSumSquare", {g}, {{"keepdims", 0}});
    total = total ? total + cast(sum, total.dtype()) : sum;
  }
  const Expr share = constant_like(total, limit) / (sqrt(total) + kEpsilon);
  const Expr scale = call("Min", {share, constant_like(share, 1.0)});
  std::vector<Expr> clipped;
  for (const Expr& g : gradients) clipped.push_back(g * cast(scale, g.dtype()));
  return clipped;
}

}  // namespace

void check(const Clip& clip) {
  if (clip.value) check_limit(*clip.value, "clip value");
  if (clip.norm) check_limit(*clip.norm, "clip norm");
}

std::vector<Expr> clip_gradients(const Clip& clip, const std::vector<Expr>& gradients) {
  check(clip);
  std::vector<Expr> limited = gradients;
  if (limited.empty()) return limited;
  if (clip.value) limited = clip_values(limited, *clip.value);
  if (clip.norm) limited = clip_norm(limited, *clip.norm);
  return limited;
}

}  // namespace graft
