#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

namespace graft {

template <int lanes>
struct LanesOf {
  using type [[gnu::vector_size(lanes * sizeof(float))]] = float;
};
template <>
struct LanesOf<1> {
  using type = float;
};

/// `lanes` numbers that are computed together: 16, 4 or 1. Operators work element by element.
template <int lanes>
using Lanes = typename LanesOf<lanes>::type;

template <int lanes>
Lanes<lanes> load(const float* from) {
  Lanes<lanes> v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
template <class V>
void store(float* to, const V& v) {
  std::memcpy(to, &v, sizeof(v));
}

/// Calls body.operator()<i>() for i in [0, count): loops over registers.
template <int count, class Body>
void unroll(Body&& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (body.template operator()<i>(), ...);
  }
  (std::make_integer_sequence<int, count>());
}

/// Calls body.operator()<lanes>(i) for i in [0, count), 16 at a time, then 4, then 1.
template <class Body>
void for_each_lanes(std::int64_t count, Body&& body) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) body.template operator()<16>(i);
  for (; i + 4 <= count; i += 4) body.template operator()<4>(i);
  for (; i < count; ++i) body.template operator()<1>(i);
}

}  // namespace graft
