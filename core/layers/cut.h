#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/graph/model.h"

namespace graft::edit {

/// The name of the value that `where` says, for `truncate`, `append` and `insert`: that of
/// - a value, or a node, whose first output is then meant;
/// - "last:N": what the last N layers begin with (`before_last_layers`);
/// - a regular expression (core/base/regex.h) that all of the names of some values or nodes match:
///   the last of them, to which all others must lead.
/// `who` starts messages. Throws Error{argument}: with close names if nothing has the name or
/// matches; with the ends, if what matches leads to several.
std::string find_cut(const Model& model, std::string_view who, std::string_view where);

/// The name of the value to which the last `count` layers with weights are applied (those of
/// Conv, Gemm, MatMul, LSTM and others, of two axes or more; norms go with the layer before them).
/// Truncated there, the model lacks them and what follows them. Throws Error{argument} if `count`
/// is 0; naming the layers, if there are no more than `count`; and, naming values nearby that would
/// do, if what comes before reaches the outputs by another way, too, as round a shortcut.
std::string before_last_layers(const Model& model, std::size_t count);

}  // namespace graft::edit
