#include "core/ops/math/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/base/parallel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/math/random.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// y = x / (1 - ratio) where the element survives, else 0; `mask` (may be null) says which do.
template <class T>
void drop_in_blocks(const T* x, std::int64_t size, double ratio, const Philox& random, T* y,
                    bool* mask) {
  constexpr std::int64_t kPiece = 4 * Philox::kBlocks;
  // An element survives when its 24 random bits, as a number in [0, 1), are at least the ratio.
  const auto threshold =
      static_cast<std::uint32_t>(std::ceil((ratio > 0.0 ? std::min(ratio, 1.0) : 0.0) * 0x1p24));
  const T scale = ratio < 1.0 ? static_cast<T>(1.0 / (1.0 - ratio)) : T{0};
  constexpr std::int64_t kPiecesWorthAThread = 32;
  const std::int64_t pieces = (size + kPiece - 1) / kPiece;
  parallel_for(pieces, kPiecesWorthAThread, [&](std::int64_t first, std::int64_t last) {
    std::array<std::uint32_t, kPiece> words;
    std::array<T, kPiece> factor;
    for (std::int64_t piece = first; piece < last; ++piece) {
      random.blocks(static_cast<std::uint64_t>(piece) * Philox::kBlocks, words.data());
      for (std::size_t i = 0; i < kPiece; ++i) {
        factor[i] = (words[i] >> 8) >= threshold ? scale : T{0};
      }
      const std::int64_t start = piece * kPiece;
      const auto count = static_cast<std::size_t>(std::min(kPiece, size - start));
#pragma omp simd  // in place is meant: element i depends on element i only
      for (std::size_t i = 0; i < count; ++i) {
        y[start + static_cast<std::int64_t>(i)] =
            factor[i] > 0 ? x[start + static_cast<std::int64_t>(i)] * factor[i] : T{0};
      }
      for (std::size_t i = 0; mask != nullptr && i < count; ++i) {
        mask[start + static_cast<std::int64_t>(i)] = (words[i] >> 8) >= threshold;
      }
    }
  });
}

/// The same with numbers of the twister, one after the other: an element survives when its number
/// is at least the ratio.
template <class T>
void drop_in_turn(const T* x, std::int64_t size, double ratio, std::mt19937 twister, T* y,
                  bool* mask) {
  const T scale = ratio < 1.0 ? static_cast<T>(1.0 / (1.0 - ratio)) : T{0};
  for (std::int64_t i = 0; i < size; ++i) {
    const bool survives = twister_uniform(twister) >= ratio;
    y[i] = survives ? x[i] * scale : T{0};
    if (mask != nullptr) mask[i] = survives;
  }
}

template <class T>
void drop(const T* x, std::int64_t size, double ratio, const RandomSource& source,
          std::uint64_t step, T* y, bool* mask) {
  if (source.is_twister) {
    drop_in_turn(x, size, ratio, source.twister(step), y, mask);
  } else {
    drop_in_blocks(x, size, ratio, source.philox(step), y, mask);
  }
}

Kernel make_training(KernelRequest& request) {
  const Attributes& a = request.attributes();
  const RandomSource source{.seed = static_cast<std::uint64_t>(a.get_int("seed", 0)),
                            .op_id = static_cast<std::uint64_t>(a.get_int("op_id", 0)),
                            .is_twister = a.get_int("twister", 0) != 0};
  const double ratio = a.get_float("ratio", 0.5F);
  const std::int64_t size = request.shape().size();
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      drop(args.input<T>(0), size, ratio, source, args.run->step, args.output<T>(), nullptr);
    };
  });
  return kernel;
}

/// Reads a float scalar of type `dtype`.
double read_scalar(DType dtype, const void* data) {
  double value = 0.0;
  visit_kernel_dtype(TypeList<float, double, Half, BFloat16>{}, dtype, [&]<class S>() {
    if constexpr (std::is_floating_point_v<S>) {
      value = *static_cast<const S*>(data);
    } else {
      value = static_cast<float>(*static_cast<const S*>(data));
    }
  });
  return value;
}

Kernel make_dropout(KernelRequest& request) {
  const RandomSource source = RandomSource::of(request.node());
  const std::int64_t size = request.shape().size();
  const DType ratio_type = request.dtype(1);
  const bool has_mode = request.has_input(2);
  const bool has_mask = request.has_output(1);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      const T* const x = args.input<T>(0);
      T* const y = args.output<T>();
      bool* const mask = has_mask ? args.output<bool>(1) : nullptr;
      if (has_mode && *args.input<bool>(2)) {
        const double ratio =
            ratio_type == DType::undefined ? 0.5 : read_scalar(ratio_type, args.inputs[1]);
        drop(x, size, ratio, source, args.run->step, y, mask);
        return;
      }
      if (y != x) std::copy_n(x, size, y);
      if (mask != nullptr) std::fill_n(mask, size, true);
    };
  });
  return kernel;
}

}  // namespace

void register_dropout_cpu(KernelRegistry& registry) {
  registry.add({.op = "Dropout", .name = "plain", .make = make_dropout});
  registry.add(
      {.op = "DropoutTraining", .domain = kInternalDomain, .name = "plain", .make = make_training});
}

}  // namespace graft
