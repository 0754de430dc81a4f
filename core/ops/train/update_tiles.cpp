#include "core/ops/kernels/split_product.h"
#include "core/ops/train/product_update_kernels.h"

namespace graft {

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace {

/// Processors with tiles have a second cache of 2 MB.
constexpr std::int64_t kPieceBytes = 2 * kUpdatePieceBytes;

bool suits(const KernelRequest& request) {
  if (request.dtype() != DType::f32 || request.dtype(1) != DType::f32) return false;
  const MatMulProblem p = gradient_product(request);
  return !p.is_empty && suits_split(product_of_rows(p, p.m));
}

Kernel make_adding(KernelRequest& request) {
  if (!suits(request) || !only_adds(request.node())) return {};
  return make_adding_product<float>(request, split_product);
}

Kernel make_by_pieces(KernelRequest& request) {
  if (!suits(request) || only_adds(request.node())) return {};
  const MatMulProblem p = gradient_product(request);
  const std::int64_t rows = rows_of_piece(p, kPieceBytes, sizeof(float));
  if (!suits_split(product_of_rows(p, rows))) return {};
  return make_update_by_pieces<float>(request, split_product, kPieceBytes);
}

}  // namespace

void register_update_tiles(KernelRegistry& registry) {
  for (const std::string_view op : product_forms()) {
    const auto add = [&](std::string_view name, KernelFactory make) {
      registry.add(
          {.op = op, .domain = kInternalDomain, .name = name, .make = make, .serves_alike = true});
    };
    add("bf16_parts", make_adding);
    add("bf16_parts_by_pieces", make_by_pieces);
  }
}

#else

void register_update_tiles(KernelRegistry& /*registry*/) {}

#endif

}  // namespace graft
