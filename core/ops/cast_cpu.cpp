#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "core/ops/elementwise_internal.h"
#include "core/ops/registry.h"
#include "core/ops/small_types_internal.h"

namespace graft {
namespace {

template <class T>
inline constexpr bool kIsShort = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// Rounds to odd: a second rounding to a shorter type then gives the same as one rounding would.
/// Source: Boldo and Melquiond, "When double rounding is odd", 2005.
float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || std::isnan(value) || std::isinf(nearest)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(back) > std::abs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1U);
}

/// ONNX's rules for Cast. A float outside the integer's range, which ONNX leaves undefined, becomes
/// the nearest number in it, and NaN becomes 0.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsShort<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (kIsShort<To>) {
    if constexpr (sizeof(From) <= 2 || std::is_same_v<From, float>) {
      return To(static_cast<float>(value));
    } else {
      return To(round_to_odd(static_cast<double>(value)));
    }
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr auto kLeast = static_cast<From>(std::numeric_limits<To>::min());
    // 2^digits: the first number beyond the range, which every float type holds exactly.
    constexpr From kBeyond = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    if (!(value >= kLeast)) {
      return std::isnan(value) ? To{0} : std::numeric_limits<To>::min();
    }
    return value < kBeyond ? static_cast<To>(value) : std::numeric_limits<To>::max();
  } else {
    return static_cast<To>(value);
  }
}

/// Types of at most 8 bits go by blocks of one of two kinds: integers, which keep their low bits,
/// or f32, which holds every small float and is rounded to odd where more digits come in.
template <class Middle>
using LoadBlock =
    std::function<void(const void* x, std::int64_t first, std::int64_t count, Middle* block)>;
template <class Middle>
using StoreBlock =
    std::function<void(const Middle* block, std::int64_t first, std::int64_t count, void* y)>;

template <class Middle, class From>
Middle to_middle(From value) {
  if constexpr (std::is_same_v<Middle, float> && !kIsShort<From> && sizeof(From) > 2) {
    return round_to_odd(static_cast<double>(value));
  } else {
    return convert<Middle>(value);
  }
}

template <class Middle>
LoadBlock<Middle> make_load(DType dtype) {
  LoadBlock<Middle> load;
  visit_dtype(AllTypes{}, dtype, [&]<class From>() {
    load = [](const void* x, std::int64_t first, std::int64_t count, Middle* block) {
      const From* const start = static_cast<const From*>(x) + first;
      std::transform(start, start + count, block, [](From v) { return to_middle<Middle>(v); });
    };
  });
  constexpr bool kIntegers = std::is_integral_v<Middle>;
  if (kIntegers ? is_small_integer(dtype) : is_small_float(dtype)) {
    load = [dtype](const void* x, std::int64_t first, std::int64_t count, Middle* block) {
      load_small(dtype, x, first, count, block);
    };
  }
  return load;
}

template <class Middle>
StoreBlock<Middle> make_store(DType dtype, const SmallRounding& rounding) {
  StoreBlock<Middle> store;
  visit_dtype(AllTypes{}, dtype, [&]<class To>() {
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
                     [](Middle v) { return static_cast<float>(v); });
      store_small(dtype, floats.data(), first, count, y, rounding);
    };
  }
  return store;
}

template <class Middle>
Kernel make_by_blocks(const KernelRequest& request, const SmallRounding& rounding) {
  const auto load = make_load<Middle>(request.dtype());
  const auto store = make_store<Middle>(request.output().dtype, rounding);
  if (!load || !store) return {};
  return [load, store, size = request.output().shape.size()](const KernelArgs& args) {
    const std::int64_t blocks = (size + kSmallBlock - 1) / kSmallBlock;
    parallel_for(blocks, 16, [&](std::int64_t first, std::int64_t last) {
      SmallBlock<Middle> block;
      for (std::int64_t b = first; b < last; ++b) {
        const std::int64_t start = b * kSmallBlock;
        const std::int64_t count = std::min(kSmallBlock, size - start);
        load(args.inputs[0], start, count, block.data());
        store(block.data(), start, count, args.outputs[0]);
      }
    });
  };
}

SmallRounding rounding_of(const Attributes& attributes) {
  const std::string mode = attributes.get_string("round_mode", "up");
  return {.saturates = attributes.get_int("saturate", 1) != 0,
          .scale = mode == "down"
                       ? ScaleRounding::down
                       : (mode == "nearest" ? ScaleRounding::nearest : ScaleRounding::up)};
}

/// For a small type on at least one side.
Kernel make_small_cast(KernelRequest& request) {
  const SmallRounding rounding = rounding_of(request.attributes());
  const DType from = request.dtype();
  const DType to = request.output().dtype;
  const bool is_whole = is_integer(from) || from == DType::boolean;
  if (is_small_integer(from) || (is_whole && is_small_integer(to))) {
    return make_by_blocks<std::int32_t>(request, rounding);
  }
  if (!is_small_float(from) && !is_small_float(to) && !is_small_integer(to)) return {};
  return make_by_blocks<float>(request, rounding);
}

/// Cast and CastLike: the output's type says what to convert to.
Kernel make_cast(KernelRequest& request) {
  const std::int64_t size = request.output().shape.size();
  Kernel kernel;
  visit_dtype(AllTypes{}, request.dtype(), [&]<class From>() {
    visit_dtype(AllTypes{}, request.output().dtype, [&]<class To>() {
      kernel = [size](const KernelArgs& args) {
        parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
          std::transform(args.input<From>(0) + first, args.input<From>(0) + last,
                         args.output<To>() + first, [](From x) { return convert<To>(x); });
        });
      };
    });
  });
  return kernel;
}

}  // namespace

void register_cast_cpu(KernelRegistry& registry) {
  for (const char* op : {"Cast", "CastLike"}) {
    registry.add({.op = op, .name = "plain", .make = make_cast});
    registry.add({.op = op, .name = "small", .make = make_small_cast});
  }
}

}  // namespace graft
