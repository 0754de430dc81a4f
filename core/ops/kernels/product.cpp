#include <cstring>

#include "core/ops/kernels/eigen_multiply.h"
#include "core/ops/kernels/held_constants.h"

namespace graft {

template <class T>
std::shared_ptr<const Tensor> pack_now(const Product<T>& product, const T* b) {
  static HeldConstants<Tensor> held;
  const auto size = static_cast<std::int64_t>(product.packed_bytes);
  const auto made = std::make_shared<Tensor>(Tensor::zeros(DType::u8, {size}));
  product.pack(b, made->data());
  return held.share(b, std::shared_ptr<const Tensor>(made), equal_bits);
}

template std::shared_ptr<const Tensor> pack_now<float>(const Product<float>&, const float* b);
template std::shared_ptr<const Tensor> pack_now<double>(const Product<double>&, const double* b);

template <class T>
Product<T> eigen_product(const ProductSpec& spec) {
  Product<T> product;
  if (spec.m == 0 || spec.n == 0) {
    product.run = [](const T*, const void*, T*, void*) {};
  } else {
    product.run = [spec](const T* a, const void* b, T* c, void*) {
      eigen_multiply(spec, T{1}, a, static_cast<const T*>(b), c);
    };
  }
  return product;
}

template Product<float> eigen_product<float>(const ProductSpec& spec);
template Product<double> eigen_product<double>(const ProductSpec& spec);

}  // namespace graft
