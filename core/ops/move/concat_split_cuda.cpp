#include "core/ops/move/concat_split.h"

#include "core/device/cuda/cuda_device.h"
#include "core/ops/kernels/strided_cuda.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// One piece of the whole tensor along an axis; both are seen as [outer, axis and inner].
struct Piece {
  int index;  ///< of the node's input or output
  std::int64_t offset_bytes;
  DeviceStridedCopy copy;
};

enum class Direction { gather, scatter };

std::vector<Piece> make_pieces(const Shape& whole, int axis, const std::vector<std::int64_t>& sizes,
                               Direction direction, std::size_t width) {
  std::vector<Piece> pieces;
  const std::int64_t outer = whole.size(0, axis);
  const std::int64_t inner = whole.size(axis + 1, whole.rank());
  const std::vector<std::int64_t> in_whole{whole[axis] * inner, 1};
  std::int64_t offset = 0;
  for (const std::int64_t size : sizes) {
    const std::int64_t columns = size * inner;
    const std::vector<std::int64_t> in_piece{columns, 1};
    const bool gathers = direction == Direction::gather;
    pieces.push_back({static_cast<int>(pieces.size()), offset * static_cast<std::int64_t>(width),
                      DeviceStridedCopy({outer, columns}, gathers ? in_whole : in_piece,
                                        gathers ? in_piece : in_whole)});
    offset += columns;
  }
  return pieces;
}

int axis_of(const KernelRequest& request, const Shape& whole) {
  return normalize_axis(request.attributes().get_int("axis", 0), whole.rank(),
                        request.node().label());
}

Kernel make_concat(KernelRequest& request) {
  const Shape& whole = request.output().shape;
  if (whole.size() == 0) return [](const KernelArgs&) {};
  if (!is_movable(request.dtype())) return {};
  const int axis = axis_of(request, whole);
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < request.input_count(); ++i) sizes.push_back(request.shape(i)[axis]);
  const std::size_t width = bytes_of(request.dtype(), 1);
  return [width, pieces = make_pieces(whole, axis, sizes, Direction::gather, width),
          stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    for (const Piece& piece : pieces) {
      piece.copy.run(args.output<std::byte>() + piece.offset_bytes, args.input<void>(piece.index),
                     width, stream);
    }
  };
}

Kernel make_split(KernelRequest& request) {
  const Shape& whole = request.shape();
  if (whole.size() == 0) return [](const KernelArgs&) {};
  if (!is_movable(request.dtype())) return {};
  const int axis = axis_of(request, whole);
  const auto sizes = split_sizes(request.node(), whole[axis]);
  if (!sizes) return {};
  const std::size_t width = bytes_of(request.dtype(), 1);
  std::vector<Piece> pieces = make_pieces(whole, axis, *sizes, Direction::scatter, width);
  std::erase_if(pieces, [&](const Piece& piece) { return !request.has_output(piece.index); });
  return [width, pieces = std::move(pieces),
          stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    for (const Piece& piece : pieces) {
      piece.copy.run(args.output<void>(piece.index), args.input<std::byte>(0) + piece.offset_bytes,
                     width, stream);
    }
  };
}

}  // namespace

void register_concat_split_cuda(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, KernelFactory make) {
    registry.add({.op = op, .device = DeviceKind::cuda, .name = "strided", .make = make});
  };
  add("Concat", make_concat);
  add("Split", make_split);
}

}  // namespace graft
