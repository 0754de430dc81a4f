#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/graph/graph.h"
#include "core/ops/math/elementwise_chain_cuda.h"

namespace graft {

/// How an op becomes a link, with the attributes that are its parameters.
struct LinkRow {
  std::string_view op;
  std::string_view domain;
  LinkOp link;
  std::string_view p = "";
  float p_default = 0.0F;
  std::string_view q = "";
  float q_default = 0.0F;
};

std::span<const LinkRow> link_rows();

/// Max, Min or Sum of more than two operands, which is a link for each but the first, or a Mean:
/// not a part of a chain.
bool is_fold(const Node& node);

/// Nothing if there is no row for the op. Of a fold: what joins two operands.
std::optional<ChainLink> link_of(const Node& node);

}  // namespace graft
