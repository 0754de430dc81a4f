#include "core/ops/kernels/strided.h"
#include "core/ops/move/concat_split.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// One piece of the whole tensor along an axis; both are seen as [outer, axis and inner].
struct Piece {
  int index;  // of the node's input or output
  std::int64_t offset;
  StridedCopy copy;
};

enum class Direction { gather, scatter };

std::vector<Piece> make_pieces(const Shape& whole, int axis, const std::vector<std::int64_t>& sizes,
                               Direction direction) {
  std::vector<Piece> pieces;
  const std::int64_t outer = whole.size(0, axis);
  const std::int64_t inner = whole.size(axis + 1, whole.rank());
  const std::vector<std::int64_t> in_whole{whole[axis] * inner, 1};
  std::int64_t offset = 0;
  for (const std::int64_t size : sizes) {
    const std::int64_t width = size * inner;
    const std::vector<std::int64_t> in_piece{width, 1};
    const bool gathers = direction == Direction::gather;
    pieces.push_back({static_cast<int>(pieces.size()), offset,
                      StridedCopy({outer, width}, gathers ? in_whole : in_piece,
                                  gathers ? in_piece : in_whole)});
    offset += width;
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
  const int axis = axis_of(request, whole);
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < request.input_count(); ++i) sizes.push_back(request.shape(i)[axis]);
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    kernel = [pieces = make_pieces(whole, axis, sizes, Direction::gather)](const KernelArgs& args) {
      for (const Piece& piece : pieces) {
        piece.copy.run(args.output<T>() + piece.offset, args.input<T>(piece.index));
      }
    };
  });
  return kernel;
}

Kernel make_split(KernelRequest& request) {
  const Shape& whole = request.shape();
  if (whole.size() == 0) return [](const KernelArgs&) {};
  const int axis = axis_of(request, whole);
  const auto sizes = split_sizes(request.node(), whole[axis]);
  if (!sizes) return {};
  std::vector<Piece> pieces = make_pieces(whole, axis, *sizes, Direction::scatter);
  std::erase_if(pieces, [&](const Piece& piece) { return !request.has_output(piece.index); });
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    kernel = [pieces = std::move(pieces)](const KernelArgs& args) {
      for (const Piece& piece : pieces) {
        piece.copy.run(args.output<T>(piece.index), args.input<T>(0) + piece.offset);
      }
    };
  });
  return kernel;
}

}  // namespace

void register_concat_split_cpu(KernelRegistry& registry) {
  registry.add({.op = "Concat", .name = "plain", .make = make_concat});
  registry.add({.op = "Split", .name = "plain", .make = make_split});
}

}  // namespace graft
