#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace graft {

/// Where a bool tensor [n], n <= limit, is true: Compress's choice.
/// Throws Error{type} or Error{shape} if it is no such tensor; `who` starts the message.
std::vector<std::int64_t> true_indices(const Tensor& condition, std::int64_t limit,
                                       std::string_view who);

}  // namespace graft
