#include "core/ops/reduce/reduce_kernel.h"

namespace graft {

void register_reduce_norm_cpu(KernelRegistry& registry) {
  using namespace reducing;
  add_kernel(registry, "ReduceProd", make<Product, MathTypes>);
  add_kernel(registry, "ReduceL1", make<L1, MathTypes>);
  add_kernel(registry, "ReduceL2", make<L2, MathTypes>);
  add_kernel(registry, "ReduceSumSquare", make<SumSquare, MathTypes>);
  add_kernel(registry, "ReduceLogSum", make<LogSum, FloatTypes>);
}

}  // namespace graft
