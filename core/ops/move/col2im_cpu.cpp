#include "core/base/parallel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/move/col2im.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Blocks over up to three axes; missing ones lead with one element.
struct Blocks {
  explicit Blocks(const BlockGeometry& g) : taps(g.taps), blocks(g.blocks) {
    for (std::size_t i = 0; i < g.axes.size(); ++i) axes[3 - g.axes.size() + i] = g.axes[i];
    image = axes[0].input * axes[1].input * axes[2].input;
  }

  /// Calls body(element of the image, element of [taps, blocks], count, step) for runs of blocks.
  template <class Body>
  void for_each_run(Body&& body) const {
    const auto& [depth, height, width] = axes;
    std::int64_t tap = 0;
    for (std::int64_t kd = 0; kd < depth.kernel; ++kd) {
      const Span ds = depth.outputs_of_tap(kd);
      for (std::int64_t kh = 0; kh < height.kernel; ++kh) {
        const Span hs = height.outputs_of_tap(kh);
        for (std::int64_t kw = 0; kw < width.kernel; ++kw, ++tap) {
          const Span ws = width.outputs_of_tap(kw);
          if (ws.count() == 0) continue;
          for (std::int64_t d = ds.first; d < ds.last; ++d) {
            for (std::int64_t h = hs.first; h < hs.last; ++h) {
              const std::int64_t row =
                  depth.position(d, kd) * height.input + height.position(h, kh);
              const std::int64_t block = (d * height.output + h) * width.output + ws.first;
              body(row * width.input + width.position(ws.first, kw), tap * blocks + block,
                   ws.count(), width.stride);
            }
          }
        }
      }
    }
  }

  WindowAxes axes{};
  std::int64_t taps;
  std::int64_t blocks;
  std::int64_t image = 1;
};

constexpr std::size_t kMostAxes = 3;

/// Calls body(plane) over all threads.
template <class Body>
void for_each_plane(std::int64_t planes, const Blocks& blocks, Body&& body) {
  const std::int64_t work = blocks.taps * blocks.blocks + blocks.image;
  parallel_for(planes, 16384 / (work + 1) + 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t plane = first; plane < last; ++plane) body(plane);
  });
}

Kernel make_col2im(KernelRequest& request) {
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const Tensor image = request.constant(1);
  const Tensor block = request.constant(2);
  if (!image.defined() || !block.defined()) return {};
  const BlockGeometry geometry(request.node(), to_int64(image), to_int64(block));
  if (geometry.axes.size() > kMostAxes) return {};
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [blocks = Blocks(geometry), planes = y[0] * y[1]](const KernelArgs& args) {
      for_each_plane(planes, blocks, [&](std::int64_t plane) {
        const T* const x = args.input<T>(0) + plane * blocks.taps * blocks.blocks;
        T* const to = args.output<T>() + plane * blocks.image;
        std::fill_n(to, blocks.image, T{});
        blocks.for_each_run(
            [&](std::int64_t at, std::int64_t from, std::int64_t count, std::int64_t step) {
              for (std::int64_t i = 0; i < count; ++i) to[at + i * step] += x[from + i];
            });
      });
    };
  });
  return kernel;
}

Kernel make_im2col(KernelRequest& request) {
  const Shape& x = request.shape();
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  const std::vector<std::int64_t> image(x.begin() + 2, x.end());
  const BlockGeometry geometry(request.node(), image, request.attributes().get_ints("block_shape"));
  if (geometry.axes.size() > kMostAxes) return {};
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [blocks = Blocks(geometry), planes = x[0] * x[1]](const KernelArgs& args) {
      for_each_plane(planes, blocks, [&](std::int64_t plane) {
        const T* const from = args.input<T>(0) + plane * blocks.image;
        T* const to = args.output<T>() + plane * blocks.taps * blocks.blocks;
        std::fill_n(to, blocks.taps * blocks.blocks, T{});
        blocks.for_each_run(
            [&](std::int64_t at, std::int64_t into, std::int64_t count, std::int64_t step) {
              for (std::int64_t i = 0; i < count; ++i) to[into + i] = from[at + i * step];
            });
      });
    };
  });
  return kernel;
}

}  // namespace

void register_col2im_cpu(KernelRegistry& registry) {
  registry.add({.op = "Col2Im", .name = "plain", .make = make_col2im});
  registry.add({.op = "Im2Col", .domain = kInternalDomain, .name = "plain", .make = make_im2col});
}

}  // namespace graft
