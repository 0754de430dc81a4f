#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/ops/builder.h"
#include "core/ops/infer.h"

namespace graft {

/// Product of the dims of axes [first, last): known when all are known or one is 0, a name when
/// every other dim is 1, else unknown. Throws Error{shape} on overflow.
Dim product(const SymShape& shape, int first, int last);

/// a+b for non-negative numbers. Throws Error{shape} on overflow.
std::int64_t checked_add(std::int64_t a, std::int64_t b);

/// Throws Error{shape} if an axis of the input, which has this axis, and `wanted` differ; checks
/// only what is known.
void require_dim(const InferContext& context, int input, int axis, const Dim& wanted);

/// `rank` unknown dims. Throws Error{unsupported} above Limits::rank.
SymShape unknown_dims(std::int64_t rank);

/// The length of an input that is a list (of axes, a shape), where known; a scalar is a list of
/// one. Throws Error{shape} if its rank is over 1.
std::optional<std::int64_t> list_length(const InferContext& context, int index);

/// Integers that the newest form has as input `index` and older ones as an attribute; nullopt when
/// they are not known before the run, or are left out. Throws Error{shape} as `list_length` does.
std::optional<std::vector<std::int64_t>> known_ints(const InferContext& context, int index,
                                                    std::string_view attribute);

/// The one whole number that an input holds; nullopt when it is not known before the run.
/// Throws Error{type} unless it is i32 or i64, Error{shape} unless it is one from `least` to
/// `most`.
std::optional<std::int64_t> known_size(const InferContext& context, int index, std::int64_t least,
                                       std::int64_t most);

/// Whether the node has the integers, known or not: as input `index` or as the attribute.
bool has_ints(const InferContext& context, int index, std::string_view attribute);

/// Axes mapped into [0, rank), in the order given.
/// Throws Error{shape} if one is out of range or comes twice; `who` starts the message.
std::vector<int> unique_axes(const std::vector<std::int64_t>& axes, int rank, std::string_view who);

/// Throws Error{shape} if `index` of an element along a dim of `dim` is outside [-dim, dim).
/// Checks only what is known before the run.
void check_indices(const InferContext& context, int indices, const Dim& dim);

/// Throws Error{type} unless the input's element type, where known, is i32 or i64.
void require_index_type(const InferContext& context, int index);

/// Throws Error{model} unless the attribute `reduction` is one that ScatterElements and ScatterND
/// have.
void check_reduction(const InferContext& context);

/// For upgrades: turns an `ints` attribute into a constant i64 input. Nothing happens without it.
void ints_attribute_to_input(Node& node, Builder& builder, std::string_view attribute, int index);

}  // namespace graft
