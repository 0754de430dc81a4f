#include "core/ops/kernels/strided.h"
#include "core/ops/move/concat_split.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using Piece = AxisPiece<StridedCopy>;

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
    kernel = [pieces = axis_pieces<StridedCopy>(whole, axis, sizes, PieceDirection::gather)](
                 const KernelArgs& args) {
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
  auto pieces = axis_pieces<StridedCopy>(whole, axis, *sizes, PieceDirection::scatter);
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
