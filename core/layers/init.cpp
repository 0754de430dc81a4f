#include "core/layers/init.h"

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
      values[static_cast<std::size_t>(i)] = draw(static_cast<std::uint64_t>(i));
    }
  });
  return dtype == DType::f32 ? tensor : tensor.cast(dtype);
}

}  // namespace

Tensor init_uniform(std::uint64_t seed, std::string_view name, DType dtype, const Shape& shape,
                    double bound) {
  const Philox random(seed, hash_of(name));
  return draw_tensor(dtype, shape, [&](std::uint64_t i) {
    return static_cast<float>(bound) * (2 * random.uniform(i) - 1);
  });
}

Tensor init_normal(std::uint64_t seed, std::string_view name, DType dtype, const Shape& shape,
                   double deviation) {
  const Philox random(seed, hash_of(name));
  return draw_tensor(dtype, shape, [&](std::uint64_t i) {
    return static_cast<float>(deviation * random.normal(i));
  });
}

}  // namespace graft
