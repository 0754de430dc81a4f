// Batch normalization of rows of channels in f32, or stored in bf16: images in channels-last order,
// or plain features. Threads share out rows; each sums its rows per channel into its part of the
// workspace, the parts are added in order, and a second pass over the rows writes the result, from
// the last row on: what the first pass read last is still in the caches. How rows are cut depends
// on shapes alone, so the result does not depend on the number of threads.
#include <algorithm>
#include <cmath>

#include "core/ops/kernels/prefetch.h"
#include "core/ops/norm/batch_norm_rows.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Mean and variance from sums of differences to the first row, which lose no digits to a large
/// mean, in one pass. T: float or BFloat16, of x and y; the rest is f32.
template <class T, Clamp clamp>
struct Forward {
  ChannelRows rows;
  BatchNormSettings by;
  FusedActivation activation;

  void operator()(const KernelArgs& args) const {
    const ChannelScratch scratch(rows, args.workspace);
    const auto* const x = args.input<T>(0);
    rows.for_each_chunk([&](std::int64_t chunk, std::int64_t first, std::int64_t last) {
      sum(scratch, x, chunk, first, last);
    });
    finish_statistics(scratch, x, args);
    rows.for_each_chunk_backwards([&](std::int64_t first, std::int64_t last) {
      write(scratch, x, args.output<T>(), first, last, args.input<float>(2));
    });
  }

  void sum(const ChannelScratch& scratch, const T* x, std::int64_t chunk, std::int64_t first,
           std::int64_t last) const {
    double* const sums = scratch.sums(chunk, 0);
    double* const squares = scratch.sums(chunk, 1);
    std::fill_n(sums, 2 * rows.channels, 0.0);
    rows.for_each_tile(
        first, last, [&]<int lanes, int vectors>(std::int64_t c, std::int64_t r, std::int64_t n) {
          Lanes<lanes> shift[vectors];
          Lanes<lanes> a[vectors]{};
          Lanes<lanes> b[vectors]{};
          unroll<vectors>([&]<int v>() { shift[v] = load<lanes>(x + c + v * lanes); });
          const T* row = x + r * rows.channels + c;
          for (; r < n; ++r, row += rows.channels) {
            unroll<vectors>([&]<int v>() {
              const Lanes<lanes> d = load<lanes>(row + v * lanes) - shift[v];
              a[v] += d;
              b[v] += d * d;
            });
          }
          unroll<vectors>([&]<int v>() {
            add_to<lanes>(sums + c + v * lanes, a[v]);
            add_to<lanes>(squares + c + v * lanes, b[v]);
          });
        });
  }

  void finish_statistics(const ChannelScratch& scratch, const T* x, const KernelArgs& args) const {
    scratch.add_up();
    const auto n = static_cast<double>(rows.count);
    const double* const sums = scratch.sums(0, 0);
    double* const variances = scratch.sums(0, 1);  // instead of the sums of squares
    const float* const scale = args.input<float>(1);
    float* const means = args.output<float>(1);
    float* const inv_stds = args.output<float>(2);
#pragma omp simd
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      const double offset = sums[c] / n;
      const double variance = variances[c] / n - offset * offset;
      variances[c] = variance > 0.0 ? variance : 0.0;
      const double inv_std = 1.0 / std::sqrt(variances[c] + by.epsilon);
      means[c] = static_cast<float>(static_cast<double>(static_cast<float>(x[c])) + offset);
      inv_stds[c] = static_cast<float>(inv_std);
      scratch.coefficients(0)[c] = means[c];
      scratch.coefficients(1)[c] = static_cast<float>(static_cast<double>(scale[c]) * inv_std);
    }
    mix(args, 3, [=](std::int64_t c) { return static_cast<double>(means[c]); });
    const double unbiased = n > 1 ? n / (n - 1) : 1.0;
    mix(args, 4, [=](std::int64_t c) { return variances[c] * unbiased; });
  }

  /// running = running * momentum + fresh * (1 - momentum), if there are running statistics.
  template <class Fresh>
  void mix(const KernelArgs& args, int running, Fresh&& fresh) const {
    float* const to = args.output<float>(running);
    if (to == nullptr) return;
    const float* const old = args.input<float>(running);
#pragma omp simd
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      to[c] = static_cast<float>(static_cast<double>(old[c]) * by.momentum +
                                 fresh(c) * (1.0 - by.momentum));
    }
  }

  void write(const ChannelScratch& scratch, const T* x, T* y, std::int64_t first, std::int64_t last,
             const float* bias) const {
    const float* const mean = scratch.coefficients(0);
    const float* const slope = scratch.coefficients(1);
    rows.for_each_tile(
        first, last, [&]<int lanes, int vectors>(std::int64_t c, std::int64_t r, std::int64_t n) {
          ChannelAffine<lanes, clamp> affine[vectors];
          unroll<vectors>([&]<int v>() {
            const std::int64_t at = c + v * lanes;
            affine[v] = {load<lanes>(mean + at), load<lanes>(slope + at), load<lanes>(bias + at)};
          });
          const FusedActivation by_value = activation;  // stores leave it in registers
          const T* from = x + r * rows.channels + c;
          T* to = y + r * rows.channels + c;
          for (; r < n; ++r, from += rows.channels, to += rows.channels) {
            unroll<vectors>([&]<int v>() {
              store(to + v * lanes, affine[v].clamped(load<lanes>(from + v * lanes), by_value));
            });
          }
        });
  }
};

/// See `differentiate` of the plain kernel for the formula. T: of x, dy and dx.
template <class T, Clamp clamp>
struct Backward {
  ChannelRows rows;
  FusedActivation activation;

  template <int lanes>
  ChannelAffine<lanes, clamp> affine(const ChannelScratch& scratch, const KernelArgs& args,
                                     std::int64_t c) const {
    const float* const bias = args.input<float>(5);
    return {load<lanes>(args.input<float>(3) + c), load<lanes>(scratch.coefficients(0) + c),
            bias == nullptr ? Lanes<lanes>{} : load<lanes>(bias + c)};
  }

  void operator()(const KernelArgs& args) const {
    const ChannelScratch scratch(rows, args.workspace);
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      scratch.coefficients(0)[c] = args.input<float>(2)[c] * args.input<float>(4)[c];
    }
    rows.for_each_chunk([&](std::int64_t chunk, std::int64_t first, std::int64_t last) {
      sum(scratch, args, chunk, first, last);
    });
    finish_sums(scratch, args);
    rows.for_each_chunk_backwards(
        [&](std::int64_t first, std::int64_t last) { write(scratch, args, first, last); });
  }

  /// x comes from far, since it was last read in the forward part, and strips of channels are an
  /// order that hardware foresees badly: each tile asks for the next.
  void sum(const ChannelScratch& scratch, const KernelArgs& args, std::int64_t chunk,
           std::int64_t first, std::int64_t last) const {
    const auto* const x = args.input<T>(0);
    const auto* const dy = args.input<T>(1);
    double* const sums = scratch.sums(chunk, 0);
    double* const moments = scratch.sums(chunk, 1);
    std::fill_n(sums, 2 * rows.channels, 0.0);
    rows.for_each_tile(
        first, last, [&]<int lanes, int vectors>(std::int64_t c, std::int64_t r, std::int64_t n) {
          ChannelAffine<lanes, clamp> by[vectors];
          Lanes<lanes> a[vectors]{};
          Lanes<lanes> b[vectors]{};
          unroll<vectors>([&]<int v>() { by[v] = affine<lanes>(scratch, args, c + v * lanes); });
          std::int64_t at = r * rows.channels + c;
          const std::int64_t tile = (n - r) * rows.channels;
          for (; r < n; ++r, at += rows.channels) {
            unroll<vectors>([&]<int v>() {
              prefetch(x + at + tile + v * lanes);
              prefetch(dy + at + tile + v * lanes);
              const Lanes<lanes> value = load<lanes>(x + at + v * lanes);
              const Lanes<lanes> gradient =
                  by[v].passed(value, load<lanes>(dy + at + v * lanes), activation);
              a[v] += gradient;
              b[v] += gradient * (value - by[v].mean);
            });
          }
          unroll<vectors>([&]<int v>() {
            add_to<lanes>(sums + c + v * lanes, a[v]);
            add_to<lanes>(moments + c + v * lanes, b[v]);
          });
        });
  }

  void finish_sums(const ChannelScratch& scratch, const KernelArgs& args) const {
    scratch.add_up();
    const double share = 1.0 / static_cast<double>(rows.count);
    const double* const sums = scratch.sums(0, 0);
    const double* const moments = scratch.sums(0, 1);
    const float* const inv_stds = args.input<float>(4);
    float* const dscale = args.output<float>(1);
    float* const dbias = args.output<float>(2);
#pragma omp simd
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      const auto inv_std = static_cast<double>(inv_stds[c]);
      const auto slope = static_cast<double>(scratch.coefficients(0)[c]);
      dscale[c] = static_cast<float>(moments[c] * inv_std);
      dbias[c] = static_cast<float>(sums[c]);
      scratch.coefficients(1)[c] =
          static_cast<float>(-slope * inv_std * inv_std * moments[c] * share);
      scratch.coefficients(2)[c] = static_cast<float>(-slope * sums[c] * share);
    }
  }

  void write(const ChannelScratch& scratch, const KernelArgs& args, std::int64_t first,
             std::int64_t last) const {
    const auto* const x = args.input<T>(0);
    const auto* const dy = args.input<T>(1);
    auto* const dx = args.output<T>();
    rows.for_each_tile(
        first, last, [&]<int lanes, int vectors>(std::int64_t c, std::int64_t r, std::int64_t n) {
          ChannelAffine<lanes, clamp> by[vectors];
          Lanes<lanes> curve[vectors];
          Lanes<lanes> offset[vectors];
          unroll<vectors>([&]<int v>() {
            by[v] = affine<lanes>(scratch, args, c + v * lanes);
            curve[v] = load<lanes>(scratch.coefficients(1) + c + v * lanes);
            offset[v] = load<lanes>(scratch.coefficients(2) + c + v * lanes);
          });
          const FusedActivation by_value = activation;  // stores leave it in registers
          const T* values = x + r * rows.channels + c;
          const T* from = dy + r * rows.channels + c;
          T* to = dx + r * rows.channels + c;
          for (; r < n; ++r) {
            unroll<vectors>([&]<int v>() {
              const Lanes<lanes> value = load<lanes>(values + v * lanes);
              const Lanes<lanes> gradient =
                  by[v].passed(value, load<lanes>(from + v * lanes), by_value);
              store(to + v * lanes,
                    gradient * by[v].slope + (value - by[v].mean) * curve[v] + offset[v]);
            });
            values += rows.channels;
            from += rows.channels;
            to += rows.channels;
          }
        });
  }
};

bool takes(const KernelRequest& request) {
  const ChannelView view(request);
  const bool is_f32 = request.dtype() == DType::f32;
  const bool is_short = request.dtype() == DType::bf16 && request.dtype(2) == DType::f32;
  return (is_f32 || is_short) && view.inner == 1 && view.count() * view.channels > 0;
}

Kernel make_training(KernelRequest& request) {
  if (!takes(request)) return {};
  const ChannelRows rows{ChannelView(request)};
  request.need_workspace(ChannelScratch::bytes(rows, 2));
  const BatchNormSettings settings(request.attributes());
  const FusedActivation activation(request.attributes());
  return with_clamp(activation, [&]<Clamp clamp>() -> Kernel {
    if (request.dtype() == DType::f32) return Forward<float, clamp>{rows, settings, activation};
    return Forward<BFloat16, clamp>{rows, settings, activation};
  });
}

Kernel make_grad(KernelRequest& request) {
  if (!takes(request)) return {};
  const ChannelRows rows{ChannelView(request)};
  request.need_workspace(ChannelScratch::bytes(rows, 3));
  const FusedActivation activation(request.attributes());
  return with_clamp(activation, [&]<Clamp clamp>() -> Kernel {
    if (request.dtype() == DType::f32) return Backward<float, clamp>{rows, activation};
    return Backward<BFloat16, clamp>{rows, activation};
  });
}

}  // namespace

void register_channels_last_batch_norm(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, KernelFactory make) {
    registry.add({.op = op,
                  .domain = kInternalDomain,
                  .name = "channels_last",
                  .make = make,
                  .knows_layouts = true});
  };
  add("BatchNormTraining", make_training);
  add("BatchNormGrad", make_grad);
}

}  // namespace graft
