#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace graft::cli {

/// What stands beside an exported step whatever the model is, as names and contents of files: a
/// page that explains the folder, and loops for onnxruntime in Python and in JavaScript.
std::vector<std::pair<std::string_view, std::string_view>> step_loops();

}  // namespace graft::cli
