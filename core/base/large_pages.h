#pragma once

#include <cstddef>

namespace graft {

inline constexpr std::size_t kLargePageBytes = std::size_t{2} << 20;

/// Memory that starts at a multiple of a large page and asks the system for such pages: who passes
/// over megabytes then misses fewer translations of addresses, and fewer pages are touched for the
/// first time. Where the system has none to give, small ones serve. Not initialised; null without
/// memory; `std::free` gives it back.
void* allocate_large_pages(std::size_t bytes);

}  // namespace graft
