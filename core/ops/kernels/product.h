#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/ops/kernels/workspace.h"

namespace graft {

/// A matrix product c = a' b' (c += with `adds`), all row-major with rows `ld` apart; a' is a or
/// its transpose. a': [m,k], b': [k,n].
struct ProductSpec {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t lda;
  std::int64_t ldb;
  std::int64_t ldc;
  bool transposes_a = false;
  bool transposes_b = false;
  bool adds = false;
  /// b serves many calls, so that bringing it into another layout first pays.
  bool packs_b = false;
  /// The product runs on the calling thread alone: others run beside it.
  bool is_serial = false;
};

/// A prepared product of operands that lie anywhere. Calls neither allocate nor throw.
template <class T>
struct Product {
  /// Bytes that `pack` fills; 0: b is used where it lies.
  std::size_t packed_bytes = 0;
  std::size_t scratch_bytes = 0;
  std::function<void(const T* b, void* packed)> pack{};
  /// b: as it lies, or what `pack` made of it.
  std::function<void(const T* a, const void* b, T* c, void* scratch)> run{};
};

template <class T>
using MakeProduct = Product<T> (*)(const ProductSpec& spec);

/// For any sizes: of double by Eigen.
template <class T>
Product<T> plain_product(const ProductSpec& spec);
/// By panels (multiply.h). With `packs_b` those of b are made once for many a.
template <>
Product<float> plain_product(const ProductSpec& spec);

/// Whether panels take the place of oneDNN's products of f32: for AVX2 those read rows pages apart
/// at half the speed, and give other bits with other numbers of threads (adr/0081).
bool panels_suit();

/// By oneDNN, or by panels what it takes badly. Exists where the program is built with oneDNN.
Product<float> onednn_product(const ProductSpec& spec);

/// What `product.pack` makes of b, which is known before the run. While somebody holds it, the next
/// who asks gets the same.
template <class T>
std::shared_ptr<const Tensor> pack_now(const Product<T>& product, const T* b);

/// A product whose second operand is brought into the layout that suits it once a run, or at once
/// where it is `known` before.
template <class T>
class RepeatedProduct {
 public:
  RepeatedProduct(const Product<T>& product, WorkspaceLayout& layout, const T* known = nullptr)
      : product_(product) {
    if (product.packed_bytes == 0) return;
    if (known != nullptr) {
      known_ = pack_now(product, known);
    } else {
      packed_ = layout.reserve_bytes(product.packed_bytes);
    }
  }

  std::size_t scratch_bytes() const { return product_.scratch_bytes; }
  /// b for the calls of this run.
  const void* prepare(const KernelArgs& args, const T* b) const {
    if (product_.packed_bytes == 0) return b;
    if (known_ != nullptr) return known_->data();
    void* const packed = workspace_at<std::byte>(args, packed_);
    product_.pack(b, packed);
    return packed;
  }
  void run(const T* a, const void* prepared, T* c, void* scratch) const {
    product_.run(a, prepared, c, scratch);
  }

 private:
  Product<T> product_;
  std::size_t packed_ = 0;
  std::shared_ptr<const Tensor> known_{};
};

}  // namespace graft
