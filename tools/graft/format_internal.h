#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace graft::cli {

/// "1,234,567".
std::string with_commas(std::int64_t number);
/// "1.6 MiB".
std::string bytes_text(std::uint64_t bytes);
/// "1.62 G", "431 k": for counts of operations.
std::string short_count(double number);
/// "84.31 %".
std::string percent(double share);
/// With so many digits behind the point.
std::string fixed(double number, int digits);
/// "0.05": the fewest digits that are this number.
std::string shortest(float number);
/// "a, b".
std::string joined(const std::vector<std::string>& words, std::string_view by = ", ");

/// 0.05, where a double would have 0.05000000074505806.
nlohmann::ordered_json shortest_json(float number);

/// One line on stdout. Bytes that are no UTF-8 become U+FFFD; NaN and infinity become null.
void print_json(const nlohmann::ordered_json& json);

}  // namespace graft::cli
