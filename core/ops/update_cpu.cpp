#include <cmath>
#include <cstring>

#include "core/base/parallel.h"
#include "core/ops/convert_internal.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

constexpr std::int64_t kGrain = 16384;

/// The loop of every update: `body(i)` for each element, all threads. Old and new content share
/// memory, so the compiler must be told that element i depends on element i only: its own check for
/// overlap would choose the scalar loop.
template <class Body>
void for_each_element(std::int64_t size, Body body) {
  parallel_for(size, kGrain, [&](std::int64_t first, std::int64_t last) {
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i) body(i);
  });
}

/// Makes the kernel for f32 or f64; `make` is a generic lambda with the element types of parameter
/// and gradient. A gradient may come in bf16, as products of mixed precision write it.
template <class Make>
Kernel for_float(const KernelRequest& request, Make make) {
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    visit_dtype(TypeList<T, BFloat16>{}, request.dtype(1),
                [&]<class G>() { kernel = make.template operator()<T, G>(); });
  });
  return kernel;
}

/// PyTorch's SGD: g += wd*p; b = momentum*b + (1-dampening)*g (b = g in the first step);
/// p -= lr * (nesterov ? g + momentum*b : b).
template <class T, class G>
Kernel sgd(const KernelRequest& request) {
  const Attributes& a = request.attributes();
  const T momentum = a.get_float("momentum", 0.0F);
  const T dampening = a.get_float("dampening", 0.0F);
  const T decay = a.get_float("weight_decay", 0.0F);
  const bool nesterov = a.get_int("nesterov", 0) != 0;
  const std::int64_t size = request.shape().size();
  const bool has_momentum = request.has_input(4);
  return [=](const KernelArgs& args) {
    const T* const p = args.input<T>(0);
    const G* const g = args.input<G>(1);
    const T lr = *args.input<T>(2);
    T* const out = args.output<T>(0);
    if (!has_momentum) {
      for_each_element(
          size, [=](std::int64_t i) { out[i] = p[i] - lr * (convert<T>(g[i]) + decay * p[i]); });
      return;
    }
    const bool first = *args.input<std::int64_t>(3) == 1;
    const T old_share = first ? T(0) : momentum;
    const T new_share = first ? T(1) : T(1) - dampening;
    const T* const b = args.input<T>(4);
    T* const new_b = args.output<T>(1);
    for_each_element(size, [=](std::int64_t i) {
      const T gradient = convert<T>(g[i]) + decay * p[i];
      const T buffer = old_share * b[i] + new_share * gradient;
      const T direction = nesterov ? gradient + momentum * buffer : buffer;
      new_b[i] = buffer;
      out[i] = p[i] - lr * direction;
    });
  };
}

/// PyTorch's Adam and AdamW: m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g^2;
/// p -= lr/(1-b1^t) * m / (sqrt(v/(1-b2^t)) + eps). Decay: g += wd*p, or p *= 1 - lr*wd.
template <class T, class G>
Kernel adam(const KernelRequest& request) {
  const Attributes& a = request.attributes();
  const double beta1 = a.get_float("beta1", 0.9F);
  const double beta2 = a.get_float("beta2", 0.999F);
  const T epsilon = a.get_float("epsilon", 1e-8F);
  const T decay = a.get_float("weight_decay", 0.0F);
  const bool decoupled = a.get_int("decoupled", 0) != 0;
  const std::int64_t size = request.shape().size();
  return [=](const KernelArgs& args) {
    const T* const p = args.input<T>(0);
    const G* const g = args.input<G>(1);
    const double lr = *args.input<T>(2);
    const auto step = static_cast<double>(*args.input<std::int64_t>(3));
    const T* const m = args.input<T>(4);
    const T* const v = args.input<T>(5);
    T* const out = args.output<T>(0);
    T* const new_m = args.output<T>(1);
    T* const new_v = args.output<T>(2);
    const T rate = static_cast<T>(lr / (1.0 - std::pow(beta1, step)));
    const T root = static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(beta2, step)));
    const T keep = decoupled ? static_cast<T>(1.0 - lr * decay) : T(1);
    const T coupled = decoupled ? T(0) : decay;
    const T b1 = static_cast<T>(beta1);
    const T b2 = static_cast<T>(beta2);
    const T c1 = static_cast<T>(1.0 - beta1);
    const T c2 = static_cast<T>(1.0 - beta2);
    for_each_element(size, [=](std::int64_t i) {
      const T gradient = convert<T>(g[i]) + coupled * p[i];
      const T mean = b1 * m[i] + c1 * gradient;
      const T square = b2 * v[i] + c2 * gradient * gradient;
      new_m[i] = mean;
      new_v[i] = square;
      out[i] = keep * p[i] - rate * mean / (std::sqrt(square) * root + epsilon);
    });
  };
}

/// PyTorch's RMSprop: s = alpha*s + (1-alpha)*g^2; centered: a = alpha*a + (1-alpha)*g and
/// s - a^2 instead of s; d = g / (sqrt(s) + eps); b = momentum*b + d; p -= lr*b.
template <class T, class G>
Kernel rmsprop(const KernelRequest& request) {
  const Attributes& a = request.attributes();
  const T alpha = a.get_float("alpha", 0.99F);
  const T epsilon = a.get_float("epsilon", 1e-8F);
  const T momentum = a.get_float("momentum", 0.0F);
  const T decay = a.get_float("weight_decay", 0.0F);
  const std::int64_t size = request.shape().size();
  const bool has_buffer = request.has_input(4) && request.has_output(2);
  const bool centered = request.has_input(5) && request.has_output(3);
  return [=](const KernelArgs& args) {
    const T* const p = args.input<T>(0);
    const G* const g = args.input<G>(1);
    const T lr = *args.input<T>(2);
    const T* const s = args.input<T>(3);
    const T* const b = args.input<T>(4 * int{has_buffer});
    const T* const mean = args.input<T>(5 * int{centered});
    T* const out = args.output<T>(0);
    T* const new_s = args.output<T>(1);
    T* const new_b = has_buffer ? args.output<T>(2) : nullptr;
    T* const new_mean = centered ? args.output<T>(3) : nullptr;
    for_each_element(size, [=](std::int64_t i) {
      const T gradient = convert<T>(g[i]) + decay * p[i];
      const T square = alpha * s[i] + (T(1) - alpha) * gradient * gradient;
      T variance = square;
      if (centered) {
        const T average = alpha * mean[i] + (T(1) - alpha) * gradient;
        new_mean[i] = average;
        variance -= average * average;
      }
      T direction = gradient / (std::sqrt(variance) + epsilon);
      if (has_buffer) {
        direction += momentum * b[i];
        new_b[i] = direction;
      }
      new_s[i] = square;
      out[i] = p[i] - lr * direction;
    });
  };
}

/// PyTorch's Adagrad: s += g^2; p -= lr/(1+(t-1)*lr_decay) * g / (sqrt(s) + eps).
template <class T, class G>
Kernel adagrad(const KernelRequest& request) {
  const Attributes& a = request.attributes();
  const T lr_decay = a.get_float("lr_decay", 0.0F);
  const T epsilon = a.get_float("epsilon", 1e-10F);
  const T decay = a.get_float("weight_decay", 0.0F);
  const std::int64_t size = request.shape().size();
  return [=](const KernelArgs& args) {
    const T* const p = args.input<T>(0);
    const G* const g = args.input<G>(1);
    const T before = static_cast<T>(*args.input<std::int64_t>(3) - 1);
    const T rate = *args.input<T>(2) / (T(1) + before * lr_decay);
    const T* const s = args.input<T>(4);
    T* const out = args.output<T>(0);
    T* const new_s = args.output<T>(1);
    for_each_element(size, [=](std::int64_t i) {
      const T gradient = convert<T>(g[i]) + decay * p[i];
      const T sum = s[i] + gradient * gradient;
      new_s[i] = sum;
      out[i] = p[i] - rate * gradient / (std::sqrt(sum) + epsilon);
    });
  };
}

template <class T, class G>
Kernel accumulate(const KernelRequest& request) {
  const T scale = request.attributes().get_float("scale", 1.0F);
  const std::int64_t size = request.shape().size();
  return [=](const KernelArgs& args) {
    const T* const buffer = args.input<T>(0);
    const G* const gradient = args.input<G>(1);
    T* const out = args.output<T>(0);
    for_each_element(size,
                     [=](std::int64_t i) { out[i] = buffer[i] + scale * convert<T>(gradient[i]); });
  };
}

Kernel make_sgd(KernelRequest& request) {
  return for_float(request, [&]<class T, class G>() { return sgd<T, G>(request); });
}
Kernel make_adam(KernelRequest& request) {
  return for_float(request, [&]<class T, class G>() { return adam<T, G>(request); });
}
Kernel make_rmsprop(KernelRequest& request) {
  return for_float(request, [&]<class T, class G>() { return rmsprop<T, G>(request); });
}
Kernel make_adagrad(KernelRequest& request) {
  return for_float(request, [&]<class T, class G>() { return adagrad<T, G>(request); });
}
Kernel make_accumulate(KernelRequest& request) {
  return for_float(request, [&]<class T, class G>() { return accumulate<T, G>(request); });
}

Kernel make_assign(KernelRequest& request) {
  const std::size_t bytes = bytes_of(request.dtype(), request.shape().size());
  return [bytes](const KernelArgs& args) {
    if (bytes > 0) std::memcpy(args.outputs[0], args.inputs[1], bytes);
  };
}

}  // namespace

void register_update_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, KernelFactory make) {
    registry.add({.op = op, .domain = kInternalDomain, .name = "plain", .make = make});
  };
  add("SgdUpdate", make_sgd);
  add("AdamUpdate", make_adam);
  add("RmspropUpdate", make_rmsprop);
  add("AdagradUpdate", make_adagrad);
  add("Accumulate", make_accumulate);
  add("Assign", make_assign);
}

}  // namespace graft
