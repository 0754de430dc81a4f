#include <algorithm>
#include <memory>

#include "core/base/parallel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/registry.h"
#include "core/ops/signal/dft.h"
#include "core/ops/signal/fft.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

/// The lines along the axis: element i of line l of part p stands at
/// ((l / inner * dim + i) * inner + l % inner) * parts + p.
struct Lines {
  Lines(const Shape& shape, int axis)
      : dim(shape[axis]),
        inner(shape.size(axis + 1, shape.rank() - 1)),
        parts(shape[shape.rank() - 1]) {}
  std::int64_t at(std::int64_t line, std::int64_t i) const {
    return ((line / inner * dim + i) * inner + line % inner) * parts;
  }

  std::int64_t dim;
  std::int64_t inner;
  std::int64_t parts;
};

template <class T>
void load(const T* x, const Lines& lines, std::int64_t line, const DftCall& call,
          ComplexNumber* to) {
  // A one-sided input is mirrored; its middle and its first number count as real.
  const std::int64_t given = call.is_real() ? call.length / 2 + 1 : call.length;
  const std::int64_t count = std::min(lines.dim, given);
  for (std::int64_t i = 0; i < count; ++i) {
    const T* const number = x + lines.at(line, i);
    to[i] = {static_cast<double>(number[0]),
             lines.parts == 2 ? static_cast<double>(number[1]) : 0.0};
  }
  std::fill(to + count, to + call.length, ComplexNumber{});
  if (!call.is_real()) return;
  to[0].im = 0.0;
  if (call.length % 2 == 0) to[call.length / 2].im = 0.0;
  for (std::int64_t i = 1; 2 * i < call.length; ++i) to[call.length - i] = {to[i].re, -to[i].im};
}

/// Swapping the parts before and after gives the inverse transform times the length.
void swap_parts(ComplexNumber* numbers, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) std::swap(numbers[i].re, numbers[i].im);
}

template <class T>
Kernel dft_kernel(KernelRequest& request, const DftCall& call) {
  const Lines from(request.shape(), call.axis);
  const Lines to(request.output().shape, call.axis);
  const std::int64_t count = request.output().shape.size() / (to.dim * to.parts);
  require_small_table(request.node(), Fft::table_size(call.length), 2);
  const auto fft = std::make_shared<const Fft>(call.length);  // shared by copies of the kernel
  const std::int64_t each = call.length + fft->scratch_size();
  constexpr std::int64_t kElementsWorthAThread = 1024;
  const std::int64_t pieces = std::min<std::int64_t>(
      {count, count * call.length / kElementsWorthAThread + 1, thread_count()});
  request.need_workspace(static_cast<std::size_t>(pieces * each) * sizeof(ComplexNumber));
  return [=](const KernelArgs& args) {
    const double scale = call.inverse ? 1.0 / static_cast<double>(call.length) : 1.0;
    parallel_for(pieces, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t piece = first; piece < last; ++piece) {
        auto* const numbers = static_cast<ComplexNumber*>(args.workspace) + piece * each;
        const std::int64_t end = count * (piece + 1) / pieces;
        for (std::int64_t line = count * piece / pieces; line < end; ++line) {
          load(args.input<T>(0), from, line, call, numbers);
          if (call.inverse) swap_parts(numbers, call.length);
          fft->run(numbers, numbers + call.length);
          if (call.inverse) swap_parts(numbers, call.length);
          for (std::int64_t i = 0; i < call.output; ++i) {
            T* const y = args.output<T>() + to.at(line, i);
            y[0] = static_cast<T>(numbers[i].re * scale);
            if (to.parts == 2) y[1] = static_cast<T>(numbers[i].im * scale);
          }
        }
      }
    });
  };
}

Kernel make_dft(KernelRequest& request) {
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  const InferContext context(const_cast<Node&>(request.node()));  // reads only
  const auto call = dft_call(context);
  if (!call) return {};
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(),
                     [&]<class T>() { kernel = dft_kernel<T>(request, *call); });
  return kernel;
}

}  // namespace

void register_dft_cpu(KernelRegistry& registry) {
  registry.add({.op = "DFT", .name = "plain", .make = make_dft});
}

}  // namespace graft
