#pragma once

#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace graft::onnx {

/// What the file's metadata_props say under a key of the node; empty where they say nothing.
std::string metadata_of(const Node& node, std::string_view key);

/// The same of a value, where the file describes it (value_info, inputs, outputs).
std::string metadata_of(const Value& value, std::string_view key);

}  // namespace graft::onnx
