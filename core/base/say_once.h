#pragma once

#include <string>

namespace graft {

/// Writes the line to stderr, once in this process for each text: what a user may want to know and
/// nothing returns. From any thread.
void say_once(const std::string& line);

}  // namespace graft
