#include "core/ops/reduce/reduce_kernel.h"
#include "core/ops/registry.h"

namespace graft {

void register_reduce_norm_cpu(KernelRegistry& registry) {
  using namespace reducing;
  const auto add = [&](std::string_view op, KernelFactory make_kernel) {
    registry.add({.op = op, .name = "eigen", .make = make_kernel});
  };
  add("ReduceProd", make<Product, MathTypes>);
  add("ReduceL1", make<L1, MathTypes>);
  add("ReduceL2", make<L2, MathTypes>);
  add("ReduceSumSquare", make<SumSquare, MathTypes>);
  add("ReduceLogSum", make<LogSum, FloatTypes>);
}

}  // namespace graft
