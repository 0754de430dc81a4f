#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/kernels/block_convert.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/product/quantize.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Scales or zero points of any type, read into the workspace once a run.
template <class T>
class Parameters {
 public:
  Parameters(const KernelRequest& request, int input, WorkspaceLayout& layout)
      : input_(input), count_(request.has_input(input) ? request.shape(input).size() : 0) {
    if (!request.has_input(input)) return;
    load_ = make_block_load<T>(request.dtype(input));
    offset_ = layout.reserve<T>(count_);
  }

  bool can_run() const { return count_ == 0 || load_; }
  /// Null when left out.
  const T* read(const KernelArgs& args) const {
    if (!load_) return nullptr;
    T* const values = workspace_at<T>(args, offset_);
    for (std::int64_t first = 0; first < count_; first += kSmallBlock) {
      load_(args.inputs[static_cast<std::size_t>(input_)], first,
            std::min(kSmallBlock, count_ - first), values + first);
    }
    return values;
  }

 private:
  int input_;
  std::int64_t count_;
  LoadBlock<T> load_;
  std::size_t offset_ = 0;
};

/// Calls body(first, count) for each block of elements, over all threads.
template <class Body>
void for_each_block(std::int64_t size, const Body& body) {
  parallel_for((size + kSmallBlock - 1) / kSmallBlock, 16,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t block = first; block < last; ++block) {
                   body(block * kSmallBlock, std::min(kSmallBlock, size - block * kSmallBlock));
                 }
               });
}

/// The quotient in the precision asked for.
template <class T>
T rounded_to(DType precision, T value) {
  if (precision == DType::f16) return static_cast<float>(Half(static_cast<float>(value)));
  if (precision == DType::bf16) return static_cast<float>(BFloat16(static_cast<float>(value)));
  return value;
}

template <class T>
Kernel make_quantize_typed(KernelRequest& request) {
  const ScaleLayout layout(request.node(), request.shape(0), request.shape(1));
  const DType to = request.output().dtype;
  const auto range = quantized_range(to);
  const bool rounds = is_integer(to) || is_small_integer(to);
  const auto precision = static_cast<DType>(
      request.attributes().get_int("precision", static_cast<int>(request.dtype(1))));
  WorkspaceLayout workspace;
  const Parameters<T> scales(request, 1, workspace);
  const Parameters<T> zeros(request, 2, workspace);
  const auto load = make_block_load<T>(request.dtype());
  const auto store =
      make_block_store<T>(to, {.saturates = request.attributes().get_int("saturate", 1) != 0});
  if (!load || !store || !range || !scales.can_run() || !zeros.can_run()) return {};
  request.need_workspace(workspace.bytes());
  return [=, size = request.shape().size(), low = static_cast<T>(range->low),
          high = static_cast<T>(range->high)](const KernelArgs& args) {
    const T* const scale = scales.read(args);
    const T* const zero = zeros.read(args);
    for_each_block(size, [&](std::int64_t first, std::int64_t count) {
      SmallBlock<T> block;
      load(args.inputs[0], first, count, block.data());
      ScaleWalk walk(layout, first);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = walk.next();
        T& x = block[static_cast<std::size_t>(i)];
        x = rounded_to(precision, x / scale[at]);
        if (rounds) x = std::nearbyint(x);
        if (zero != nullptr) x += zero[at];
        if (rounds) x = x < low ? low : (x > high ? high : x);
      }
      store(block.data(), first, count, args.outputs[0]);
    });
  };
}

template <class T>
Kernel make_dequantize_typed(KernelRequest& request) {
  const ScaleLayout layout(request.node(), request.shape(0), request.shape(1));
  WorkspaceLayout workspace;
  const Parameters<T> scales(request, 1, workspace);
  const Parameters<T> zeros(request, 2, workspace);
  const auto load = make_block_load<T>(request.dtype());
  const auto store = make_block_store<T>(request.output().dtype);
  if (!load || !store || !scales.can_run() || !zeros.can_run()) return {};
  request.need_workspace(workspace.bytes());
  return [=, size = request.shape().size()](const KernelArgs& args) {
    const T* const scale = scales.read(args);
    const T* const zero = zeros.read(args);
    for_each_block(size, [&](std::int64_t first, std::int64_t count) {
      SmallBlock<T> block;
      load(args.inputs[0], first, count, block.data());
      ScaleWalk walk(layout, first);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = walk.next();
        T& x = block[static_cast<std::size_t>(i)];
        x = (zero == nullptr ? x : x - zero[at]) * scale[at];
      }
      store(block.data(), first, count, args.outputs[0]);
    });
  };
}

/// f64 where the scale is (tests), else f32.
Kernel make_quantize(KernelRequest& request) {
  return is_kernel_dtype<double>(request.dtype(1)) ? make_quantize_typed<double>(request)
                                                   : make_quantize_typed<float>(request);
}
Kernel make_dequantize(KernelRequest& request) {
  return is_kernel_dtype<double>(request.dtype(1)) ? make_dequantize_typed<double>(request)
                                                   : make_dequantize_typed<float>(request);
}

/// The range of x, widened to hold 0, maps to 0 ... 255.
template <class T>
void quantize_dynamically(const T* x, std::int64_t size, std::uint8_t* y, T* scale_out,
                          std::uint8_t* zero_out) {
  T least = 0;
  T most = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
  }
  constexpr T kSteps = 255;
  const T scale = (most == least ? T{1} : most - least) / kSteps;
  const auto limited = [](T v) { return v < 0 ? T{0} : (v > kSteps ? kSteps : v); };
  const T zero = std::nearbyint(limited(-least / scale));
  parallel_for(size, 16384, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const T q = limited(std::nearbyint(x[i] / scale) + zero);
      y[i] = static_cast<std::uint8_t>(q == q ? q : 0);  // NaN becomes 0
    }
  });
  *scale_out = scale;
  *zero_out = static_cast<std::uint8_t>(zero == zero ? zero : 0);
}

Kernel make_dynamic(KernelRequest& request) {
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [size = request.shape().size()](const KernelArgs& args) {
      quantize_dynamically(args.input<T>(0), size, args.output<std::uint8_t>(0), args.output<T>(1),
                           args.output<std::uint8_t>(2));
    };
  });
  return kernel;
}

}  // namespace

void register_quantize_cpu(KernelRegistry& registry) {
  registry.add({.op = "QuantizeLinear", .name = "plain", .make = make_quantize});
  registry.add({.op = "DequantizeLinear", .name = "plain", .make = make_dequantize});
  registry.add({.op = "DynamicQuantizeLinear", .name = "plain", .make = make_dynamic});
}

}  // namespace graft
