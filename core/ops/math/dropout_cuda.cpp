#include "core/ops/math/dropout_cuda.h"

#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/math/random.h"

namespace graft {
namespace {

Kernel make_training(KernelRequest& request) {
  const Attributes& a = request.attributes();
  if (request.dtype() != DType::f32 || a.get_int("twister", 0) != 0) return {};
  const RandomSource source{.seed = static_cast<std::uint64_t>(a.get_int("seed", 0)),
                            .op_id = static_cast<std::uint64_t>(a.get_int("op_id", 0))};
  const DeviceDropout dropout{.size = request.shape().size(),
                              .ratio = a.get_float("ratio", 0.5F),
                              .seed = source.seed,
                              .first_stream = source.first_stream()};
  return [dropout, stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    dropout.run(args.input<float>(0), args.output<float>(), &args.run->step, stream);
  };
}

}  // namespace

void register_dropout_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain", {{"DropoutTraining", make_training, kInternalDomain}});
}

}  // namespace graft
