#pragma once

#include "core/graph/graph.h"
#include "core/ops/expr.h"

namespace graft {

/// f16 or bf16: types that kernels store and may compute in f32.
bool is_short_float(DType dtype);

/// x, or x in f32 if its type is a short one: for formulas in which f16 has no room.
Expr widened(const Expr& x);

/// A node alone in a graph of its own, its values of short types in f32.
class F32Twin {
 public:
  explicit F32Twin(const Node& node);

  const Node& node() const { return *node_; }

 private:
  Value* copy_input(const Value* input);

  Graph graph_;
  Node* node_ = nullptr;
};

}  // namespace graft
