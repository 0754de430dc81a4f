#include <algorithm>
#include <cmath>

#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/math/random.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Each element a * (a number drawn) + b.
template <class Draw>
Kernel make_drawn(const KernelRequest& request, double factor, double offset, Draw draw) {
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.output().dtype, [&]<class T>() {
    kernel = [=, source = RandomSource::of(request.node()),
              size = request.output().shape.size()](const KernelArgs& args) {
      RandomNumbers numbers(source, args.run->step);
      T* const y = args.output<T>();
      for (std::int64_t i = 0; i < size; ++i) {
        y[i] = static_cast<T>(std::fma(draw(numbers), factor, offset));  // rounded once anywhere
      }
    };
  });
  return kernel;
}

Kernel make_normal(KernelRequest& request) {
  const Attributes& a = request.attributes();
  return make_drawn(request, a.get_float("scale", 1.0F), a.get_float("mean", 0.0F),
                    [](RandomNumbers& numbers) { return numbers.normal(); });
}

Kernel make_uniform(KernelRequest& request) {
  const double low = request.attributes().get_float("low", 0.0F);
  const double high = request.attributes().get_float("high", 1.0F);
  return make_drawn(request, high - low, low,
                    [](RandomNumbers& numbers) { return numbers.uniform(); });
}

/// The side of the unit interval that means 1 is NumPy's, which inverts the rarer outcome, and
/// takes no number where there is no choice.
bool is_one(double p, std::int64_t index, RandomNumbers& numbers) {
  if (!(p > 0.0)) return false;
  const double u = numbers.uniform_at(index);
  return p <= 0.5 ? u > 1.0 - p : u <= p;
}

Kernel make_bernoulli(KernelRequest& request) {
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    visit_kernel_dtype(AllTypes{}, request.output().dtype, [&]<class R>() {
      kernel = [source = RandomSource::of(request.node()),
                size = request.shape().size()](const KernelArgs& args) {
        RandomNumbers numbers(source, args.run->step);
        for (std::int64_t i = 0; i < size; ++i) {
          const bool one = is_one(static_cast<double>(args.input<T>(0)[i]), i, numbers);
          args.output<R>()[i] = static_cast<R>(one ? 1.0F : 0.0F);
        }
      };
    });
  });
  return kernel;
}

/// Draws from the softmax of a row of scores: the first class at which the running sum of e^score
/// passes a uniform share of the whole.
template <class T, class R>
void draw_classes(const T* scores, std::int64_t classes, RandomNumbers& numbers, R* y,
                  std::int64_t count) {
  const auto largest = static_cast<double>(*std::max_element(scores, scores + classes));
  const auto weight = [&](std::int64_t c) {
    return std::exp(static_cast<double>(scores[c]) - largest);
  };
  double total = 0.0;
  for (std::int64_t c = 0; c < classes; ++c) total += weight(c);
  for (std::int64_t i = 0; i < count; ++i) {
    double rest = numbers.uniform() * total;
    std::int64_t c = 0;
    while (c + 1 < classes && rest >= weight(c)) rest -= weight(c++);
    y[i] = static_cast<R>(c);
  }
}

Kernel make_multinomial(KernelRequest& request) {
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    visit_kernel_dtype(TypeList<std::int32_t, std::int64_t>{}, request.output().dtype,
                       [&]<class R>() {
                         kernel = [source = RandomSource::of(request.node()),
                                   batch = request.shape()[0], classes = request.shape()[1],
                                   count = request.output().shape[1]](const KernelArgs& args) {
                           RandomNumbers numbers(source, args.run->step);
                           for (std::int64_t b = 0; b < batch; ++b) {
                             draw_classes(args.input<T>(0) + b * classes, classes, numbers,
                                          args.output<R>() + b * count, count);
                           }
                         };
                       });
  });
  return kernel;
}

}  // namespace

void register_random_cpu(KernelRegistry& registry) {
  for (const char* op : {"RandomNormal", "RandomNormalLike"}) {
    registry.add({.op = op, .name = "plain", .make = make_normal});
  }
  for (const char* op : {"RandomUniform", "RandomUniformLike"}) {
    registry.add({.op = op, .name = "plain", .make = make_uniform});
  }
  registry.add({.op = "Bernoulli", .name = "plain", .make = make_bernoulli});
  registry.add({.op = "Multinomial", .name = "plain", .make = make_multinomial});
}

}  // namespace graft
