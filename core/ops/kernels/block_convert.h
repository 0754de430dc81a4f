#pragma once

#include <cstdint>
#include <functional>

#include "core/ops/kernels/small_types.h"

namespace graft {

/// Elements of any numeric type by blocks of kSmallBlock, which start at multiples of it, as
/// Middle: i32, f32 or f64. Integers become i32 by their low bits; f32 holds every small float and
/// is rounded to odd where more digits come in, so that a second rounding does no harm.
template <class Middle>
using LoadBlock =
    std::function<void(const void* x, std::int64_t first, std::int64_t count, Middle* block)>;
template <class Middle>
using StoreBlock =
    std::function<void(const Middle* block, std::int64_t first, std::int64_t count, void* y)>;

/// Empty for a type that cannot be read so: small floats as i32, strings, ...
template <class Middle>
LoadBlock<Middle> make_block_load(DType dtype);
template <class Middle>
StoreBlock<Middle> make_block_store(DType dtype, const SmallRounding& rounding = {});

}  // namespace graft
