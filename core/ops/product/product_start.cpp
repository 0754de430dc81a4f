#include "core/ops/product/product_start.h"

namespace graft {

ProductStart::ProductStart(const KernelRequest& request, const MatMulProblem& p)
    : has_c_(p.beta != 0.0F), step_(p.n) {
  if (!has_c_) return;
  const Shape& c = request.shape(2);
  const bool is_row = c.rank() > 0 && c[c.rank() - 1] == p.n && c.size() == p.n;
  if (p.beta == 1.0F && c == request.output().shape) return;
  if (p.beta == 1.0F && is_row) {
    step_ = 0;
  } else {
    fill_ = fill_with_c<float>(request, p.beta);
  }
}

Addend ProductStart::of(const KernelArgs& args) const {
  if (!has_c_) return {};
  if (!fill_) return {args.input<float>(2), step_};
  fill_(args);
  return {args.output<float>(), step_};
}

}  // namespace graft
