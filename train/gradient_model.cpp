#include "train/gradient_model.h"

#include "autograd/gradient_op.h"
#include "core/passes/pipeline.h"

namespace graft {

Model model_with_gradients(const Model& model, const std::vector<Datum>& inputs) {
  Model copy = model.clone();
  if (!autograd::has_gradient_ops(copy.graph())) return copy;
  passes::PassContext context{.device = cpu(), .model = &copy};
  for (const Datum& input : inputs) {
    const Tensor& tensor = input.tensor();
    context.input_types.push_back({tensor.dtype(), SymShape(tensor.shape())});
  }
  passes::run_passes(passes::kGradientModel, copy.graph(), context);
  autograd::lower_gradient_ops(copy.graph());
  return copy;
}

}  // namespace graft
