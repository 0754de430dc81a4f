#include <cstring>

#include "core/ops/kernels/held_constants.h"
#include "core/ops/kernels/multiply.h"

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

template <>
Product<double> plain_product<double>(const ProductSpec& spec) {
  Product<double> product;
  if (spec.m == 0 || spec.n == 0) {
    product.run = [](const double*, const void*, double*, void*) {};
  } else {
    product.run = [spec](const double* a, const void* b, double* c, void*) {
      multiply(spec, 1.0, a, static_cast<const double*>(b), c);
    };
  }
  return product;
}

}  // namespace graft
