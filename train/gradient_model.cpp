#include "train/gradient_model.h"

#include "autograd/gradient_op.h"
#include "core/passes/pass.h"

namespace graft {

Model model_with_gradients(const Model& model, const std::vector<Datum>& inputs) {
  Model copy = model.clone();
  if (!autograd::has_gradient_ops(copy.graph())) return copy;
  passes::upgrade_opset(copy);
  std::vector<ValueType> types;
  for (const Datum& input : inputs) {
    const Tensor& tensor = input.tensor();
    types.push_back({tensor.dtype(), SymShape(tensor.shape())});
  }
  passes::bind_inputs(copy.graph(), types);
  // Not settled: what only a Gradient op names looks dead before it is lowered.
  passes::infer_shapes(copy.graph());
  passes::fold_constants(copy.graph());
  passes::decompose(copy.graph());
  autograd::lower_gradient_ops(copy.graph());
  return copy;
}

}  // namespace graft
