#pragma once

#include <string_view>

#include "core/ops/builder.h"

namespace graft::test {

/// A graph under construction, for a pass to change.
struct SmallNet {
  SmallNet() : builder(graph) {}
  Expr input(std::string_view name, const Shape& shape, DType dtype = DType::f32) {
    return builder.expr(graph.add_input(name, {dtype, SymShape(shape)}));
  }

  Graph graph{"net"};
  Builder builder;
};

}  // namespace graft::test
