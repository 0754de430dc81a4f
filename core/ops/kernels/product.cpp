#include "core/ops/kernels/eigen_multiply.h"

namespace graft {

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
