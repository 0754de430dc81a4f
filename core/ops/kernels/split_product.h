#pragma once

#include "core/ops/kernels/amx_tiles.h"
#include "core/ops/kernels/multiply.h"
#include "core/ops/kernels/product.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {

/// Whether the processor has tiles (may_use_amx), and GRAFT_ISA asks for no set of instructions.
bool may_split();
/// Whether a product of f32 is faster by the processor's tiles of bf16, to which each number is the
/// sum of three (adr/0086): where it may be split and is large enough.
bool suits_split(const ProductSpec& spec);

/// Such a product. Its results have the error of f32 sums or less; the bits of an element depend on
/// its row of a', its column of b' and on which of m and n is larger, and not on threads.
class SplitProduct {
 public:
  explicit SplitProduct(const ProductSpec& spec);

  /// What `run` needs, at an address of 64.
  std::size_t scratch_bytes() const;
  /// What `pack` fills where spec.packs_b, at an address of 64.
  std::size_t packed_bytes() const;
  void pack(const float* b, void* packed) const;
  /// c = alpha a' b' + addend; spec.adds is not looked at. b: as it lies, or with spec.packs_b what
  /// `pack` made of it. `addend` may be c itself.
  void run(float alpha, const float* a, const void* b, const Addend& addend, float* c,
           void* scratch) const;

 private:
  ProductSpec spec_;
  std::int64_t threads_;
};

/// The same for kernels that take any product: by panels (plain_product) what does not suit.
Product<float> split_product(const ProductSpec& spec);

}  // namespace graft

#endif
