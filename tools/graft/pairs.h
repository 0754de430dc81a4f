#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace graft::cli {

/// What stands before and behind the last '=' of an option's argument: names may hold one, values
/// seldom do. Throws Error{argument} if there is none or nothing on one of its sides; `form` says
/// what was wanted, as "NAME=FILE".
std::pair<std::string, std::string> split_pair(std::string_view option, const std::string& text,
                                               std::string_view form);

}  // namespace graft::cli
