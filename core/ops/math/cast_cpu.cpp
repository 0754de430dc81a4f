#include <algorithm>

#include "core/base/machine.h"
#include "core/ops/kernels/block_convert.h"
#include "core/ops/kernels/convert_floats.h"
#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

template <class Middle>
Kernel make_by_blocks(const KernelRequest& request, const SmallRounding& rounding) {
  const auto load = make_block_load<Middle>(request.dtype());
  const auto store = make_block_store<Middle>(request.output().dtype, rounding);
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

/// Between f32 and the short floats: the Casts of mixed precision, which chains take in.
RunFunction make_cast_run(const KernelRequest& request) {
  using Types = TypeList<float, Half, BFloat16>;
  RunFunction run;
  visit_kernel_dtype(Types{}, request.dtype(), [&]<class From>() {
    visit_kernel_dtype(Types{}, request.output().dtype, [&]<class To>() {
      run = [](std::int64_t count, std::span<const RunOperand> x, void* y) {
        convert_floats(static_cast<const From*>(x[0].elements), count, static_cast<To*>(y));
      };
    });
  });
  return run;
}

using ConvertRange = void (*)(const void* x, std::int64_t first, std::int64_t last, void* y);

template <class From, class To>
void convert_range(const void* x, std::int64_t first, std::int64_t last, void* y) {
  const auto* const from = static_cast<const From*>(x);
  std::transform(from + first, from + last, static_cast<To*>(y) + first,
                 [](From value) { return convert<To>(value); });
}

/// An integer becomes the same bits with and without a sign.
template <class From>
using Targets = std::conditional_t<std::is_integral_v<From>, Signless<AllTypes>, AllTypes>;

/// Cast and CastLike: the output's type says what to convert to.
Kernel make_cast(KernelRequest& request) {
  ConvertRange range = nullptr;
  visit_kernel_dtype(AllTypes{}, request.dtype(), [&]<class From>() {
    visit_kernel_dtype(Targets<From>{}, request.output().dtype,
                       [&]<class To>() { range = convert_range<From, To>; });
  });
  if (range == nullptr) return {};
  return [range, size = request.output().shape.size()](const KernelArgs& args) {
    parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
      range(args.inputs[0], first, last, args.outputs[0]);
    });
  };
}

}  // namespace

void register_cast_cpu(KernelRegistry& registry) {
  registry.add({.op = "Cast", .name = "plain", .make_run = make_cast_run});
  for (const char* op : {"Cast", "CastLike"}) {
    registry.add({.op = op, .name = "plain", .make = make_cast});
    registry.add({.op = op, .name = "small", .make = make_small_cast});
  }
}

}  // namespace graft
