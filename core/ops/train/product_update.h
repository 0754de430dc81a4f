#pragma once

#include <string>
#include <string_view>

#include "core/graph/node.h"

namespace graft {

/// The op that does what `update` does with a gradient that is a product of matrices, and makes
/// that itself: "AdamUpdate" -> "AdamProductUpdate". It reads `a` in place of the gradient, and `b`
/// as its last input.
std::string product_form_name(std::string_view update);

/// Whether the node is such a product form.
bool is_product_update(const Node& node);

/// Whether an update, or its product form, adds a multiple of the gradient to the parameter and
/// does no more: plain SGD.
bool only_adds(const Node& update);

}  // namespace graft
