// An element by an index of any integer type.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>

namespace graft {

/// `values[index]`, for containers whose own index is unsigned where ours are not. `index` lies
/// within [0, size), which only debug builds assert.
template <typename Values, std::integral Index>
decltype(auto) at(Values& values, Index index) {
  assert(index >= 0 && static_cast<std::size_t>(index) < values.size());
  return values[static_cast<std::size_t>(index)];
}

}  // namespace graft
