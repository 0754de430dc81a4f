#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace graft::passes {

// A build for certain models has, of what it can do without, the passes alone that changed one of
// them: CMake names these to core/passes (GRAFT_MODELS, adr/0083).

/// Whether this build has what PassWatch::note_change calls so.
#if defined(GRAFT_PASSES)
inline constexpr std::string_view kChosenPasses[] = {GRAFT_PASSES};
constexpr bool is_chosen(std::string_view pass) {
  return std::ranges::find(kChosenPasses, pass) != std::ranges::end(kChosenPasses);
}
#else
constexpr bool is_chosen(std::string_view /*pass*/) {
  return true;
}
#endif

}  // namespace graft::passes
