// All optimizers' updates: a thread an element, one kernel a rule.
#include <algorithm>

#include "core/device/cuda/grid.h"
#include "core/device/cuda/numbers.h"
#include "core/ops/kernels/stochastic_rounding_cuda.h"
#include "core/ops/train/update_cuda.h"

namespace graft {
namespace {

/// Of one element.
struct Content {
  float parameter;
  float gradient;
  float a, b, c;  ///< states
};

/// What depends on rate and step alone, computed once a block.
struct Factors {
  float rate;
  float root;
  float keep;
  float old_share;
  float new_share;
};

__device__ Factors factors_of(const DeviceUpdate& u) {
  const double rate = u.rate == nullptr ? 0.0 : *u.rate;
  const auto step = static_cast<double>(u.step == nullptr ? 1 : *u.step);
  Factors f{static_cast<float>(rate), 1.0F, 1.0F, 0.0F, 1.0F};
  if (u.kind == UpdateKind::adam) {
    f.rate = static_cast<float>(rate / (1.0 - pow(u.beta1, step)));
    f.root = static_cast<float>(1.0 / sqrt(1.0 - pow(u.beta2, step)));
    f.keep = u.decoupled ? static_cast<float>(1.0 - rate * u.decay) : 1.0F;
  } else if (u.kind == UpdateKind::sgd && step != 1.0) {
    f.old_share = static_cast<float>(u.beta1);
    f.new_share = 1.0F - static_cast<float>(u.beta2);
  } else if (u.kind == UpdateKind::adagrad) {
    const float before = static_cast<float>(step - 1.0);
    f.rate = *u.rate / (1.0F + before * static_cast<float>(u.beta1));
  }
  return f;
}

struct Sgd {
  __device__ void operator()(const DeviceUpdate& u, const Factors& f, Content& x) const {
    const float gradient = x.gradient + u.decay * x.parameter;
    if (u.state[0] == nullptr) {
      x.parameter -= f.rate * gradient;
      return;
    }
    x.a = f.old_share * x.a + f.new_share * gradient;
    const float direction = u.nesterov ? gradient + static_cast<float>(u.beta1) * x.a : x.a;
    x.parameter -= f.rate * direction;
  }
};

struct Adam {
  __device__ void operator()(const DeviceUpdate& u, const Factors& f, Content& x) const {
    const float gradient = x.gradient + (u.decoupled ? 0.0F : u.decay) * x.parameter;
    x.a = static_cast<float>(u.beta1) * x.a + static_cast<float>(1.0 - u.beta1) * gradient;
    x.b =
        static_cast<float>(u.beta2) * x.b + static_cast<float>(1.0 - u.beta2) * gradient * gradient;
    x.parameter = f.keep * x.parameter - f.rate * x.a / (sqrtf(x.b) * f.root + u.epsilon);
  }
};

struct Rmsprop {
  __device__ void operator()(const DeviceUpdate& u, const Factors& f, Content& x) const {
    const auto alpha = static_cast<float>(u.beta1);
    const float gradient = x.gradient + u.decay * x.parameter;
    x.a = alpha * x.a + (1.0F - alpha) * gradient * gradient;
    float variance = x.a;
    if (u.state[2] != nullptr) {
      x.c = alpha * x.c + (1.0F - alpha) * gradient;
      variance -= x.c * x.c;
    }
    float direction = gradient / (sqrtf(variance) + u.epsilon);
    if (u.state[1] != nullptr) {
      direction += static_cast<float>(u.beta2) * x.b;
      x.b = direction;
    }
    x.parameter -= f.rate * direction;
  }
};

struct Adagrad {
  __device__ void operator()(const DeviceUpdate& u, const Factors& f, Content& x) const {
    const float gradient = x.gradient + u.decay * x.parameter;
    x.a += gradient * gradient;
    x.parameter -= f.rate * gradient / (sqrtf(x.a) + u.epsilon);
  }
};

struct Accumulate {
  __device__ void operator()(const DeviceUpdate& u, const Factors&, Content& x) const {
    x.parameter += static_cast<float>(u.beta1) * x.gradient;
  }
};

__device__ float stored(const void* data, bool is_bf16, std::int64_t i) {
  if (data == nullptr) return 0.0F;
  return is_bf16 ? as_float(static_cast<const BFloat16*>(data)[i])
                 : static_cast<const float*>(data)[i];
}

/// In f64, as sums of rows are elsewhere.
__device__ float gradient_of(const DeviceUpdate& u, std::int64_t i) {
  if (u.rows == 0) return stored(u.gradient, u.gradient_is_bf16, i);
  const auto* const rows = static_cast<const float*>(u.gradient);
  double sum = 0.0;
  for (std::int64_t row = 0; row < u.rows; ++row) {
    sum += static_cast<double>(u.factors[row]) * static_cast<double>(rows[row * u.size + i]);
  }
  return u.scale * static_cast<float>(sum);
}

/// `which`: the output of the update that the state is.
__device__ void store_state(const DeviceUpdate& u, int which, std::int64_t i, float x) {
  void* const data = u.new_state[which - 1];
  if (data == nullptr) return;
  if (u.state_is_bf16[which - 1]) {
    const DeviceRounding round(static_cast<std::uint64_t>(*u.step),
                               static_cast<std::uint64_t>(which));
    static_cast<BFloat16*>(data)[i] = round(x, i);
  } else {
    static_cast<float*>(data)[i] = x;
  }
}

template <class Rule>
__device__ void apply(const DeviceUpdate& u) {
  __shared__ Factors factors;
  if (threadIdx.x == 0) factors = factors_of(u);
  __syncthreads();
  for_each_item(u.size, [&](std::int64_t i) {
    Content x{u.parameter[i], gradient_of(u, i), stored(u.state[0], u.state_is_bf16[0], i),
              stored(u.state[1], u.state_is_bf16[1], i), stored(u.state[2], u.state_is_bf16[2], i)};
    Rule{}(u, factors, x);
    store_state(u, 1, i, x.a);
    store_state(u, 2, i, x.b);
    store_state(u, 3, i, x.c);
    u.new_parameter[i] = x.parameter;
  });
}

template <class Rule>
__global__ void update(const __grid_constant__ DeviceUpdate u) {
  apply<Rule>(u);
}

/// A row of blocks each.
template <class Rule>
__global__ void update_all(const __grid_constant__ DeviceUpdates all) {
  apply<Rule>(all.updates[blockIdx.y]);
}

template <class Rule>
void start(const DeviceUpdate& u, cudaStream_t stream) {
  launch(update<Rule>, blocks_for(u.size), dim3(kBlockThreads), 0, stream, u);
}

template <class Rule>
void start(const DeviceUpdates& all, cudaStream_t stream) {
  constexpr unsigned kMostBlocks = 512;  // of one: the others take their turns meanwhile
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < all.count; ++i) longest = std::max(longest, all.updates[i].size);
  const dim3 grid(std::min(blocks_for(longest).x, kMostBlocks), static_cast<unsigned>(all.count));
  launch(update_all<Rule>, grid, dim3(kBlockThreads), 0, stream, all);
}

template <class Updates>
void start_kind(UpdateKind kind, const Updates& updates, cudaStream_t stream) {
  switch (kind) {
    case UpdateKind::sgd:
      return start<Sgd>(updates, stream);
    case UpdateKind::adam:
      return start<Adam>(updates, stream);
    case UpdateKind::rmsprop:
      return start<Rmsprop>(updates, stream);
    case UpdateKind::adagrad:
      return start<Adagrad>(updates, stream);
    case UpdateKind::accumulate:
      return start<Accumulate>(updates, stream);
  }
}

}  // namespace

void DeviceUpdate::run(cudaStream_t stream) const {
  if (size != 0) start_kind(kind, *this, stream);
}

void DeviceUpdates::run(cudaStream_t stream) const {
  if (count != 0) start_kind(updates[0].kind, *this, stream);
}

}  // namespace graft
