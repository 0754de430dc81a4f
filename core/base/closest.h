#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

/// Those of `candidates` that a person who wrote `wanted` may have meant, best first: equal but for
/// case, containing or contained, or few letters off. At most `most`, without repeats.
std::vector<std::string> closest(std::string_view wanted,
                                 const std::vector<std::string_view>& candidates,
                                 std::size_t most = 5);

/// "'a', 'b'".
std::string quoted_list(const std::vector<std::string>& names);

}  // namespace graft
