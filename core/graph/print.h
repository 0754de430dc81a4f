#pragma once

#include <string>

#include "core/graph/model.h"

namespace graft {

struct PrintOptions {
  /// Integer and bool tensors of at most so many elements are shown with their elements, and so
  /// are floating-point scalars; longer ones only with type and shape.
  std::int64_t most_elements = 8;
  /// Adds the file's names of nodes as comments.
  bool node_names = false;
};

/// One line a value without producer and one line a node, bodies indented below it: the same text
/// for the same graph on every machine, for golden tests and for people.
///
///     main(x: f32[N,10]) -> (y: f32[N,5])
///       w: f32[5,10] = initializer
///       axes: i64[1] = {0}
///       velocity: f32[5,10] = variable
///       h: f32[N,5] = Gemm(x, w, _) {transB = 1}
///       y: f32[N,5] = ai.graft.Twice(h)
///
/// `_` is a left-out input or output, `?` an unknown type or dim. Floats are the shortest decimals
/// that read back as the same number. Doc strings and metadata are not shown.
std::string print(const Graph& graph, const PrintOptions& options = {});

/// The model's opset imports and functions, then its graph, in that form.
std::string print(const Model& model, const PrintOptions& options = {});

}  // namespace graft
