#include "core/ops/kernels/block_convert.h"

#include <algorithm>

#include "core/ops/kernels/convert.h"
#include "core/ops/kernels/kernel_dtypes.h"

namespace graft {
namespace {

template <class Middle, class From>
Middle to_middle(From value) {
  if constexpr (std::is_same_v<Middle, float> && !kIsShort<From> && sizeof(From) > 2) {
    return round_to_odd(static_cast<double>(value));
  } else {
    return convert<Middle>(value);
  }
}

/// Reads a small type as Read.
template <class Middle, class Read>
LoadBlock<Middle> small_load(DType dtype) {
  return [dtype](const void* x, std::int64_t first, std::int64_t count, Middle* block) {
    SmallBlock<Read> read;
    load_small(dtype, x, first, count, read.data());
    std::transform(read.begin(), read.begin() + count, block,
                   [](Read v) { return static_cast<Middle>(v); });
  };
}

}  // namespace

template <class Middle>
LoadBlock<Middle> make_block_load(DType dtype) {
  LoadBlock<Middle> load;
  visit_kernel_dtype(AllTypes{}, dtype, [&]<class From>() {
    load = [](const void* x, std::int64_t first, std::int64_t count, Middle* block) {
      const From* const start = static_cast<const From*>(x) + first;
      std::transform(start, start + count, block, [](From v) { return to_middle<Middle>(v); });
    };
  });
  if (is_small_integer(dtype)) return small_load<Middle, std::int32_t>(dtype);
  if constexpr (!std::is_integral_v<Middle>) {
    if (is_small_float(dtype)) return small_load<Middle, float>(dtype);
  }
  return load;
}

template <class Middle>
StoreBlock<Middle> make_block_store(DType dtype, const SmallRounding& rounding) {
  StoreBlock<Middle> store;
  visit_kernel_dtype(AllTypes{}, dtype, [&]<class To>() {
    store = [](const Middle* block, std::int64_t first, std::int64_t count, void* y) {
      std::transform(block, block + count, static_cast<To*>(y) + first,
                     [](Middle v) { return convert<To>(v); });
    };
  });
  if (is_small_integer(dtype)) {
    store = [dtype](const Middle* block, std::int64_t first, std::int64_t count, void* y) {
      SmallBlock<std::int32_t> whole;
      std::transform(block, block + count, whole.begin(),
                     [](Middle v) { return convert<std::int32_t>(v); });
      store_small(dtype, whole.data(), first, count, y);
    };
  } else if (is_small_float(dtype)) {
    store = [dtype, rounding](const Middle* block, std::int64_t first, std::int64_t count,
                              void* y) {
      SmallBlock<float> floats;
      std::transform(block, block + count, floats.begin(),
                     [](Middle v) { return to_middle<float>(v); });
      store_small(dtype, floats.data(), first, count, y, rounding);
    };
  }
  return store;
}

template LoadBlock<std::int32_t> make_block_load(DType dtype);
template LoadBlock<float> make_block_load(DType dtype);
template LoadBlock<double> make_block_load(DType dtype);
template StoreBlock<std::int32_t> make_block_store(DType dtype, const SmallRounding& rounding);
template StoreBlock<float> make_block_store(DType dtype, const SmallRounding& rounding);
template StoreBlock<double> make_block_store(DType dtype, const SmallRounding& rounding);

}  // namespace graft
