// One kernel for all element-wise ops and chains of them. A thread takes four elements at a time
// and keeps the values between links in shared memory: registers could not be told by number.
// Long: apply, a case for each op.
#include "core/device/cuda/grid.h"
#include "core/device/cuda/numbers.h"
#include "core/ops/math/link_functions_cuda.h"

namespace graft {
namespace {

constexpr unsigned kThreads = 128;

__device__ Four apply(const ChainLink& one, const Four& x4, const Four& y4, const Four& z4) {
  [[maybe_unused]] const float p = one.p;
  [[maybe_unused]] const float q = one.q;
  switch (one.op) {
    case LinkOp::copy:
      return link::each(x4, y4, z4, [](float x, float, float) { return x; });
    case LinkOp::add:
      return link::each(x4, y4, z4, [](float x, float y, float) { return x + y; });
    case LinkOp::subtract:
      return link::each(x4, y4, z4, [](float x, float y, float) { return x - y; });
    case LinkOp::multiply:
      return link::each(x4, y4, z4, [](float x, float y, float) { return x * y; });
    case LinkOp::divide:
      return link::each(x4, y4, z4, [](float x, float y, float) { return x / y; });
    case LinkOp::negate:
      return link::each(x4, y4, z4, [](float x, float, float) { return -x; });
    case LinkOp::absolute:
      return link::each(x4, y4, z4, [](float x, float, float) { return fabsf(x); });
    case LinkOp::square_root:
      return link::each(x4, y4, z4, [](float x, float, float) { return sqrtf(x); });
    case LinkOp::reciprocal:
      return link::each(x4, y4, z4, [](float x, float, float) { return 1.0F / x; });
    case LinkOp::exponential:
      return link::each(x4, y4, z4, [](float x, float, float) { return expf(x); });
    case LinkOp::logarithm:
      return link::each(x4, y4, z4, [](float x, float, float) { return logf(x); });
    case LinkOp::error_function:
      return link::each(x4, y4, z4, [](float x, float, float) { return erff(x); });
    case LinkOp::sign:
      return link::each(x4, y4, z4, [](float x, float, float) { return link::sign(x); });
    case LinkOp::floor:
      return link::each(x4, y4, z4, [](float x, float, float) { return floorf(x); });
    case LinkOp::ceiling:
      return link::each(x4, y4, z4, [](float x, float, float) { return ceilf(x); });
    case LinkOp::round:
      return link::each(x4, y4, z4, [](float x, float, float) { return rintf(x); });
    case LinkOp::larger:  // NaN wins
      return link::each(x4, y4, z4,
                        [](float x, float y, float) { return x > y || x != x ? x : y; });
    case LinkOp::smaller:
      return link::each(x4, y4, z4,
                        [](float x, float y, float) { return x < y || x != x ? x : y; });
    case LinkOp::power:
      return link::each(x4, y4, z4, [](float x, float y, float) { return powf(x, y); });
    case LinkOp::tanh:
      return link::each(x4, y4, z4, [](float x, float, float) { return tanhf(x); });
    case LinkOp::sigmoid:
      return link::each(x4, y4, z4, [](float x, float, float) { return link::sigmoid(x); });
    case LinkOp::softplus:
      return link::each(x4, y4, z4, [](float x, float, float) { return link::softplus(x); });
    case LinkOp::softsign:
      return link::each(x4, y4, z4, [](float x, float, float) { return x / (1.0F + fabsf(x)); });
    case LinkOp::relu:
      return link::each(x4, y4, z4, [](float x, float, float) { return x < 0.0F ? 0.0F : x; });
    case LinkOp::leaky_relu:
      return link::each(x4, y4, z4, [=](float x, float, float) { return x > 0.0F ? x : p * x; });
    case LinkOp::prelu:
      return link::each(x4, y4, z4, [](float x, float y, float) { return x < 0.0F ? y * x : x; });
    case LinkOp::hard_sigmoid:
      return link::each(x4, y4, z4,
                        [=](float x, float, float) { return link::unit_clamp(p * x + q); });
    case LinkOp::hard_swish:
      return link::each(x4, y4, z4, [](float x, float, float) {
        return x * link::unit_clamp(x * (1.0F / 6.0F) + 0.5F);
      });
    case LinkOp::gelu:
      return link::each(x4, y4, z4, [](float x, float, float) { return x * link::normal_cdf(x); });
    case LinkOp::gelu_tanh:
      return link::each(x4, y4, z4, [](float x, float, float) {
        return 0.5F * x * (1.0F + tanhf(link::gelu_argument(x)));
      });
    case LinkOp::swish:
      return link::each(x4, y4, z4,
                        [=](float x, float, float) { return x * link::sigmoid(p * x); });
    case LinkOp::mish:
      return link::each(x4, y4, z4, [](float x, float, float) { return link::mish(x); });
    case LinkOp::thresholded_relu:
      return link::each(x4, y4, z4,
                        [=](float x, float, float) { return x > p || x != x ? x : 0.0F; });
    case LinkOp::elu:
      return link::each(x4, y4, z4,
                        [=](float x, float, float) { return x > 0.0F ? x : p * expm1f(x); });
    case LinkOp::selu:
      return link::each(
          x4, y4, z4, [=](float x, float, float) { return x > 0.0F ? q * x : q * p * expm1f(x); });
    case LinkOp::celu:
      return link::each(x4, y4, z4,
                        [=](float x, float, float) { return x > 0.0F ? x : p * expm1f(x / p); });
    case LinkOp::arc_sine:
      return link::each(x4, y4, z4, [](float x, float, float) { return asinf(x); });
    case LinkOp::arc_cosine:
      return link::each(x4, y4, z4, [](float x, float, float) { return acosf(x); });
    case LinkOp::arc_tangent:
      return link::each(x4, y4, z4, [](float x, float, float) { return atanf(x); });
    case LinkOp::sine:
      return link::each(x4, y4, z4, [](float x, float, float) { return sine_cosine(x).sine; });
    case LinkOp::cosine:
      return link::each(x4, y4, z4, [](float x, float, float) { return sine_cosine(x).cosine; });
    case LinkOp::tangent:
      return link::each(x4, y4, z4, [](float x, float, float) { return link::tangent(x); });
    case LinkOp::hyperbolic_sine:
      return link::each(x4, y4, z4, [](float x, float, float) { return sinhf(x); });
    case LinkOp::hyperbolic_cosine:
      return link::each(x4, y4, z4, [](float x, float, float) { return coshf(x); });
    case LinkOp::area_sine:
      return link::each(x4, y4, z4, [](float x, float, float) { return asinhf(x); });
    case LinkOp::area_cosine:
      return link::each(x4, y4, z4, [](float x, float, float) { return acoshf(x); });
    case LinkOp::area_tangent:
      return link::each(x4, y4, z4, [](float x, float, float) { return atanhf(x); });
    case LinkOp::clip:
      return link::each(x4, y4, z4, [](float x, float y, float z) { return link::clip(x, y, z); });
    case LinkOp::tanh_gradient:
      return link::each(x4, y4, z4, [](float x, float y, float) { return y * (1.0F - x * x); });
    case LinkOp::sigmoid_gradient:
      return link::each(x4, y4, z4, [](float x, float y, float) { return y * x * (1.0F - x); });
    case LinkOp::relu_gradient:
      return link::each(x4, y4, z4, [](float x, float y, float) { return x <= 0.0F ? 0.0F : y; });
    case LinkOp::leaky_relu_gradient:
      return link::each(x4, y4, z4, [=](float x, float y, float) { return x > 0.0F ? y : p * y; });
    case LinkOp::gelu_gradient:
      return link::each(x4, y4, z4,
                        [](float x, float y, float) { return link::gelu_gradient(x, y); });
    case LinkOp::gelu_tanh_gradient:
      return link::each(x4, y4, z4,
                        [](float x, float y, float) { return link::gelu_tanh_gradient(x, y); });
    case LinkOp::swish_gradient:
      return link::each(x4, y4, z4,
                        [=](float x, float y, float) { return link::swish_gradient(x, y, p); });
    case LinkOp::mish_gradient:
      return link::each(x4, y4, z4,
                        [](float x, float y, float) { return link::mish_gradient(x, y); });
    case LinkOp::hard_swish_gradient:
      return link::each(x4, y4, z4,
                        [](float x, float y, float) { return link::hard_swish_gradient(x, y); });
    case LinkOp::equal:
      return link::each(x4, y4, z4, [](float x, float y, float) { return link::truth(x == y); });
    case LinkOp::less:
      return link::each(x4, y4, z4, [](float x, float y, float) { return link::truth(x < y); });
    case LinkOp::less_or_equal:
      return link::each(x4, y4, z4, [](float x, float y, float) { return link::truth(x <= y); });
    case LinkOp::greater:
      return link::each(x4, y4, z4, [](float x, float y, float) { return link::truth(x > y); });
    case LinkOp::greater_or_equal:
      return link::each(x4, y4, z4, [](float x, float y, float) { return link::truth(x >= y); });
    case LinkOp::both:
      return link::each(
          x4, y4, z4, [](float x, float y, float) { return link::truth(x != 0.0F && y != 0.0F); });
    case LinkOp::either:
      return link::each(
          x4, y4, z4, [](float x, float y, float) { return link::truth(x != 0.0F || y != 0.0F); });
    case LinkOp::one_of:
      return link::each(x4, y4, z4, [](float x, float y, float) {
        return link::truth((x != 0.0F) != (y != 0.0F));
      });
    case LinkOp::invert:
      return link::each(x4, y4, z4, [](float x, float, float) { return link::truth(x == 0.0F); });
    case LinkOp::is_nan:
      return link::each(x4, y4, z4, [](float x, float, float) { return link::truth(x != x); });
    case LinkOp::choose:
      return link::each(x4, y4, z4, [](float x, float y, float z) { return x != 0.0F ? y : z; });
    case LinkOp::within:
      return link::each(x4, y4, z4,
                        [](float x, float y, float z) { return link::truth(x >= y && x <= z); });
  }
  return x4;
}

__device__ Four rounded(const Four& x) {
  Four result;
  for (int j = 0; j < 4; ++j) {
    BFloat16 stored;
    set_float(stored, x.v[j]);
    result.v[j] = as_float(stored);
  }
  return result;
}

template <class T>
__device__ float element(const void* data, std::int64_t i) {
  return as_float(static_cast<const T*>(data)[i]);
}

__device__ float element(const ChainProgram::Operand& x, std::int64_t i) {
  switch (x.type) {
    case ChainType::bf16:
      return element<BFloat16>(x.data, i);
    case ChainType::boolean:
      return as_float(static_cast<const unsigned char*>(x.data)[i] != 0);
    default:
      return element<float>(x.data, i);
  }
}

/// Where the operand has what stands at `i` of the result.
__device__ std::int64_t place(const ChainProgram& program, const ChainProgram::Operand& x,
                              std::int64_t i) {
  if (x.walk == ChainProgram::Walk::along) return i;
  std::int64_t at = 0;
  for (int axis = program.axes; axis-- > 0 && x.walk == ChainProgram::Walk::by_steps;) {
    const std::int64_t outer = i / program.dims[axis];
    at += (i - outer * program.dims[axis]) * x.steps[axis];
    i = outer;
  }
  return at;
}

__device__ Four load(const ChainProgram& program, const ChainProgram::Operand& x, std::int64_t i) {
  if (x.walk == ChainProgram::Walk::literal) return {{x.literal, x.literal, x.literal, x.literal}};
  const bool is_plain = x.walk == ChainProgram::Walk::along && x.type == ChainType::f32;
  if (is_plain && i + 3 < program.size)
    return load_vector<Four>(static_cast<const float*>(x.data) + i);
  Four result;
  for (int j = 0; j < 4; ++j) {
    const std::int64_t within = i + j < program.size ? i + j : program.size - 1;
    result.v[j] = element(x, place(program, x, within));
  }
  return result;
}

template <class T>
__device__ void store_each(void* data, std::int64_t i, std::int64_t size, const Four& values) {
  for (int j = 0; j < 4; ++j) {
    if (i + j < size) set_float(static_cast<T*>(data)[i + j], values.v[j]);
  }
}

__device__ void store(const ChainProgram::Result& y, std::int64_t i, std::int64_t size,
                      const Four& values) {
  if (y.type == ChainType::f32 && i + 3 < size) {
    store_vector(static_cast<float*>(y.data) + i, values);
  } else if (y.type == ChainType::f32) {
    store_each<float>(y.data, i, size, values);
  } else if (y.type == ChainType::bf16) {
    store_each<BFloat16>(y.data, i, size, values);
  } else {
    store_each<bool>(y.data, i, size, values);
  }
}

__global__ void __launch_bounds__(kThreads)
    interpret_chain(const __grid_constant__ ChainProgram program) {
  Four* const mine = dynamic_shared<Four>() + threadIdx.x;  // slot k: mine[k * kThreads]
  for_each_item((program.size + 3) / 4, [&](std::int64_t item) {
    const std::int64_t i = item * 4;
    for (int k = 0; k < program.operand_count; ++k) {
      mine[k * kThreads] = load(program, program.operands[k], i);
    }
    for (int k = 0; k < program.link_count; ++k) {
      const ChainLink& one = program.links[k];
      const Four result =
          apply(one, mine[one.x * kThreads], mine[one.y * kThreads], mine[one.z * kThreads]);
      mine[one.to * kThreads] = one.rounds_to_bf16 ? rounded(result) : result;
    }
    for (int k = 0; k < program.result_count; ++k) {
      store(program.results[k], i, program.size, mine[program.results[k].slot * kThreads]);
    }
  });
}

}  // namespace

void run_chain(const ChainProgram& program, cudaStream_t stream) {
  if (program.size == 0) return;
  const std::size_t shared_bytes =
      sizeof(Four) * kThreads * static_cast<unsigned>(program.slot_count);
  launch(interpret_chain, blocks_for((program.size + 3) / 4, kThreads), dim3(kThreads),
         shared_bytes, stream, program);
}

}  // namespace graft
