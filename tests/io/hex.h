#pragma once

#include <string>
#include <string_view>

namespace graft::testing {

/// The bytes that pairs of hexadecimal digits stand for.
inline std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

}  // namespace graft::testing
