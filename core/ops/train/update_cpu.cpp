#include <cmath>
#include <cstring>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/convert.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/train/product_update_kernels.h"
#include "core/ops/train/update_rule.h"

namespace graft {
namespace {

/// The loop of every rule. Old and new content share memory, so the compiler must be told that
/// element i depends on element i only: its own check for overlap would choose the scalar loop.
template <class Body>
void for_each_element(const UpdatePart& part, Body body) {
  const std::int64_t size = part.size();
#pragma omp simd
  for (std::int64_t i = 0; i < size; ++i) body(i);
}

/// PyTorch's SGD: g += wd*p; b = momentum*b + (1-dampening)*g (b = g in the first step);
/// p -= lr * (nesterov ? g + momentum*b : b).
template <class T, class G>
UpdateRule sgd(const KernelRequest& request) {
  const Attributes& a = request.attributes();
  const T momentum = a.get_float("momentum", 0.0F);
  const T dampening = a.get_float("dampening", 0.0F);
  const T decay = a.get_float("weight_decay", 0.0F);
  const bool nesterov = a.get_int("nesterov", 0) != 0;
  const bool has_momentum = request.has_input(4);
  return [=](const UpdatePart& part) {
    const T* const p = part.old_elements<T>(0);
    const G* const g = part.gradient<G>();
    const T lr = *part.args.input<T>(2);
    T* const out = part.new_elements<T>(0);
    if (!has_momentum) {
      for_each_element(
          part, [=](std::int64_t i) { out[i] = p[i] - lr * (convert<T>(g[i]) + decay * p[i]); });
      return;
    }
    const bool first = *part.args.input<std::int64_t>(3) == 1;
    const T old_share = first ? T(0) : momentum;
    const T new_share = first ? T(1) : T(1) - dampening;
    const T* const b = part.old_elements<T>(4);
    T* const new_b = part.new_elements<T>(1);
    for_each_element(part, [=](std::int64_t i) {
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
UpdateRule adam(const KernelRequest& request) {
  const Attributes& a = request.attributes();
  const double beta1 = a.get_float("beta1", 0.9F);
  const double beta2 = a.get_float("beta2", 0.999F);
  const T epsilon = a.get_float("epsilon", 1e-8F);
  const T decay = a.get_float("weight_decay", 0.0F);
  const bool decoupled = a.get_int("decoupled", 0) != 0;
  return [=](const UpdatePart& part) {
    const T* const p = part.old_elements<T>(0);
    const G* const g = part.gradient<G>();
    const double lr = *part.args.input<T>(2);
    const auto step = static_cast<double>(*part.args.input<std::int64_t>(3));
    const T* const m = part.old_elements<T>(4);
    const T* const v = part.old_elements<T>(5);
    T* const out = part.new_elements<T>(0);
    T* const new_m = part.new_elements<T>(1);
    T* const new_v = part.new_elements<T>(2);
    const T rate = static_cast<T>(lr / (1.0 - std::pow(beta1, step)));
    const T root = static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(beta2, step)));
    const T keep = decoupled ? static_cast<T>(1.0 - lr * decay) : T(1);
    const T coupled = decoupled ? T(0) : decay;
    const T b1 = static_cast<T>(beta1);
    const T b2 = static_cast<T>(beta2);
    const T c1 = static_cast<T>(1.0 - beta1);
    const T c2 = static_cast<T>(1.0 - beta2);
    for_each_element(part, [=](std::int64_t i) {
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
UpdateRule rmsprop(const KernelRequest& request) {
  const Attributes& a = request.attributes();
  const T alpha = a.get_float("alpha", 0.99F);
  const T epsilon = a.get_float("epsilon", 1e-8F);
  const T momentum = a.get_float("momentum", 0.0F);
  const T decay = a.get_float("weight_decay", 0.0F);
  const bool has_buffer = request.has_input(5) && request.has_output(2);
  const bool centered = request.has_input(6) && request.has_output(3);
  return [=](const UpdatePart& part) {
    const T* const p = part.old_elements<T>(0);
    const G* const g = part.gradient<G>();
    const T lr = *part.args.input<T>(2);
    const T* const s = part.old_elements<T>(4);
    const T* const b = part.old_elements<T>(5 * int{has_buffer});
    const T* const mean = part.old_elements<T>(6 * int{centered});
    T* const out = part.new_elements<T>(0);
    T* const new_s = part.new_elements<T>(1);
    T* const new_b = has_buffer ? part.new_elements<T>(2) : nullptr;
    T* const new_mean = centered ? part.new_elements<T>(3) : nullptr;
    for_each_element(part, [=](std::int64_t i) {
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
UpdateRule adagrad(const KernelRequest& request) {
  const Attributes& a = request.attributes();
  const T lr_decay = a.get_float("lr_decay", 0.0F);
  const T epsilon = a.get_float("epsilon", 1e-10F);
  const T decay = a.get_float("weight_decay", 0.0F);
  return [=](const UpdatePart& part) {
    const T* const p = part.old_elements<T>(0);
    const G* const g = part.gradient<G>();
    const T before = static_cast<T>(*part.args.input<std::int64_t>(3) - 1);
    const T rate = *part.args.input<T>(2) / (T(1) + before * lr_decay);
    const T* const s = part.old_elements<T>(4);
    T* const out = part.new_elements<T>(0);
    T* const new_s = part.new_elements<T>(1);
    for_each_element(part, [=](std::int64_t i) {
      const T gradient = convert<T>(g[i]) + decay * p[i];
      const T sum = s[i] + gradient * gradient;
      new_s[i] = sum;
      out[i] = p[i] - rate * gradient / (std::sqrt(sum) + epsilon);
    });
  };
}

template <class T, class G>
UpdateRule accumulate(const KernelRequest& request) {
  const T scale = request.attributes().get_float("scale", 1.0F);
  return [=](const UpdatePart& part) {
    const T* const buffer = part.old_elements<T>(0);
    const G* const gradient = part.gradient<G>();
    T* const out = part.new_elements<T>(0);
    for_each_element(part,
                     [=](std::int64_t i) { out[i] = buffer[i] + scale * convert<T>(gradient[i]); });
  };
}

/// The rules of all updates by the element types of parameter and gradient; the latter may come in
/// bf16, as products of mixed precision write it.
template <class T, class G>
constexpr std::pair<std::string_view, UpdateRule (*)(const KernelRequest&)> kRules[] = {
    {"SgdUpdate", sgd<T, G>},         {"AdamUpdate", adam<T, G>},
    {"RmspropUpdate", rmsprop<T, G>}, {"AdagradUpdate", adagrad<T, G>},
    {"Accumulate", accumulate<T, G>},
};

/// The update by a gradient that is there as a whole.
Kernel make_update(KernelRequest& request) {
  UpdateRule rule = update_rule(request);
  if (!rule) return {};
  const std::int64_t size = request.shape().size();
  const DType dtype = request.dtype(1);
  return [=, rule = std::move(rule)](const KernelArgs& args) {
    parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
      const auto* const gradient = static_cast<const std::byte*>(args.inputs[1]);
      rule({args, gradient + bytes_of(dtype, first), first, last});
    });
  };
}

template <class T>
Kernel make_product_update(KernelRequest& request) {
  if (!is_kernel_dtype<T>(request.dtype())) return {};
  return make_update_by_pieces<T>(request, plain_product<T>);
}

template <class T>
Kernel make_adding(KernelRequest& request) {
  if (!is_kernel_dtype<T>(request.dtype())) return {};
  return make_adding_product<T>(request, plain_product<T>);
}

Kernel make_assign(KernelRequest& request) {
  const std::size_t bytes = bytes_of(request.dtype(), request.shape().size());
  return [bytes](const KernelArgs& args) {
    if (bytes > 0 && args.outputs[0] != args.inputs[1]) {
      std::memcpy(args.outputs[0], args.inputs[1], bytes);
    }
  };
}

}  // namespace

UpdateRule update_rule(const KernelRequest& request) {
  UpdateRule rule;
  const OpRegistry& registry = OpRegistry::instance();
  const std::string& op = request.node().op_type();
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    visit_kernel_dtype(TypeList<T, BFloat16>{}, request.dtype(1), [&]<class G>() {
      for (const auto& [update, make] : kRules<T, G>) {
        if (op == update || op == registry.find(update, kInternalDomain)->product_form.op) {
          rule = with_stored_states<T>(request, make(request));
        }
      }
    });
  });
  return rule;
}

void register_update_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view name, KernelFactory make) {
    registry.add(
        {.op = op, .domain = kInternalDomain, .name = name, .make = make, .serves_alike = true});
  };
  for (const auto& [op, make] : kRules<float, float>) add(op, "plain", make_update);
  add("Assign", "plain", make_assign);
  for (const std::string_view op : product_forms()) {
    add(op, "by_rows", make_adding_rows);
    add(op, "panels", make_adding<float>);
    add(op, "panels_by_pieces", make_product_update<float>);
    add(op, "eigen", make_adding<double>);
    add(op, "eigen_by_pieces", make_product_update<double>);
  }
}

}  // namespace graft
