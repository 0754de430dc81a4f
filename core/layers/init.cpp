#include "core/layers/init.h"

#include <array>
#include <cmath>

#include "core/base/at.h"
#include "core/base/closest.h"
#include "core/base/parallel.h"
#include "core/base/rng.h"

namespace graft {
namespace {

/// FNV-1a, 64 bits: the same on every machine, which std::hash is not.
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

/// Element i is draw(i).
template <class Draw>
Tensor draw_tensor(DType dtype, const Shape& shape, const Draw& draw) {
  constexpr std::int64_t kGrain = 4096;
  Tensor tensor = Tensor::empty(DType::f32, shape);
  const std::span<float> values = tensor.values<float>();
  parallel_for(tensor.size(), kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      at(values, i) = draw(static_cast<std::uint64_t>(i));
    }
  });
  return dtype == DType::f32 ? tensor : tensor.cast(dtype);
}

double variance_of(const Init& init, const Fans& fans) {
  const auto fan = static_cast<double>(init.fan_out ? fans.out : fans.in);
  return 2 / ((1 + init.slope * init.slope) * fan);
}

struct NamedInit {
  std::string_view name;
  Init::Kind kind;
};
constexpr std::array kInits{
    NamedInit{"uniform_fan_in", Init::uniform_fan_in},
    NamedInit{"kaiming_uniform", Init::kaiming_uniform},
    NamedInit{"kaiming_normal", Init::kaiming_normal},
    NamedInit{"xavier_uniform", Init::xavier_uniform},
    NamedInit{"xavier_normal", Init::xavier_normal},
    NamedInit{"normal", Init::normal},
    NamedInit{"zeros", Init::constant},
    NamedInit{"constant", Init::constant},
};

}  // namespace

Tensor init_uniform(std::uint64_t seed, std::string_view name, DType dtype, const Shape& shape,
                    double bound) {
  const Philox random(seed, hash_of(name));
  return draw_tensor(dtype, shape, [&](std::uint64_t i) {
    return static_cast<float>(bound) * (2 * random.uniform(i) - 1);
  });
}

Tensor init_normal(std::uint64_t seed, std::string_view name, DType dtype, const Shape& shape,
                   double deviation, double mean) {
  const Philox random(seed, hash_of(name));
  return draw_tensor(dtype, shape, [&](std::uint64_t i) {
    return static_cast<float>(mean + deviation * random.normal(i));
  });
}

Tensor init_weight(const Init& init, const Fans& fans, std::uint64_t seed, std::string_view name,
                   DType dtype, const Shape& shape) {
  for (const double number : {init.slope, init.gain, init.mean, init.deviation, init.value}) {
    if (std::isfinite(number)) continue;
    fail(ErrorKind::argument, "weight '", name, "': its initializer has the number ", number,
         ", wanted finite ones");
  }
  if (fans.in < 1 || fans.out < 1 || !(init.deviation >= 0)) {
    fail(ErrorKind::argument, "weight '", name, "': fans of ", fans.in, " in and ", fans.out,
         " out and a deviation of ", init.deviation,
         ", wanted fans of at least 1 and a deviation of at least 0");
  }
  const auto in = static_cast<double>(fans.in);
  const auto both = static_cast<double>(fans.in) + static_cast<double>(fans.out);
  const auto uniform = [&](double bound) { return init_uniform(seed, name, dtype, shape, bound); };
  const auto normal = [&](double deviation) {
    return init_normal(seed, name, dtype, shape, deviation);
  };
  switch (init.kind) {
    case Init::uniform_fan_in:
      return uniform(1 / std::sqrt(in));
    case Init::kaiming_uniform:
      return uniform(std::sqrt(3 * variance_of(init, fans)));
    case Init::kaiming_normal:
      return normal(std::sqrt(variance_of(init, fans)));
    case Init::xavier_uniform:
      return uniform(init.gain * std::sqrt(6 / both));
    case Init::xavier_normal:
      return normal(init.gain * std::sqrt(2 / both));
    case Init::normal:
      return init_normal(seed, name, dtype, shape, init.deviation, init.mean);
    case Init::constant:
      break;
  }
  return Tensor::full(dtype, shape, init.value);
}

Init init_of(std::string_view name) {
  std::vector<std::string> names;
  for (const NamedInit& known : kInits) {
    if (known.name == name) return {.kind = known.kind};
    names.emplace_back(known.name);
  }
  fail(ErrorKind::argument, "no initializer is called '", name, "'; valid: ", quoted_list(names));
}

}  // namespace graft
