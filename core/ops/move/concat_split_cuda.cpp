#include "core/ops/move/concat_split.h"

#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/strided_cuda.h"

namespace graft {
namespace {

using Piece = AxisPiece<DeviceStridedCopy>;

std::int64_t offset_bytes(const Piece& piece, std::size_t width) {
  return piece.offset * static_cast<std::int64_t>(width);
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
  return
      [width, pieces = axis_pieces<DeviceStridedCopy>(whole, axis, sizes, PieceDirection::gather),
       stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        for (const Piece& piece : pieces) {
          piece.copy.run(args.output<std::byte>() + offset_bytes(piece, width),
                         args.input<void>(piece.index), width, stream);
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
  auto pieces = axis_pieces<DeviceStridedCopy>(whole, axis, *sizes, PieceDirection::scatter);
  std::erase_if(pieces, [&](const Piece& piece) { return !request.has_output(piece.index); });
  return [width, pieces = std::move(pieces),
          stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    for (const Piece& piece : pieces) {
      piece.copy.run(args.output<void>(piece.index),
                     args.input<std::byte>(0) + offset_bytes(piece, width), width, stream);
    }
  };
}

}  // namespace

void register_concat_split_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "strided", {{"Concat", make_concat}, {"Split", make_split}});
}

}  // namespace graft
