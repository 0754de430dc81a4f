#include <Eigen/Core>

#include "core/ops/kernels/product.h"

namespace graft {
namespace {

template <class T>
using Rows = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
                        Eigen::OuterStride<>>;

template <class T>
void multiply(const ProductSpec& p, const T* a_data, const T* b_data, T* c_data) {
  Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
             Eigen::OuterStride<>>
      c(c_data, p.m, p.n, Eigen::OuterStride<>(p.ldc));
  if (!p.adds) c.setZero();
  if (p.k == 0) return;
  const Rows<T> a(a_data, p.transposes_a ? p.k : p.m, p.transposes_a ? p.m : p.k,
                  Eigen::OuterStride<>(p.lda));
  const Rows<T> b(b_data, p.transposes_b ? p.n : p.k, p.transposes_b ? p.k : p.n,
                  Eigen::OuterStride<>(p.ldb));
  if (p.transposes_a && p.transposes_b) {
    c.noalias() += a.transpose() * b.transpose();
  } else if (p.transposes_a) {
    c.noalias() += a.transpose() * b;
  } else if (p.transposes_b) {
    c.noalias() += a * b.transpose();
  } else {
    c.noalias() += a * b;
  }
}

}  // namespace

template <class T>
Product<T> eigen_product(const ProductSpec& spec) {
  Product<T> product;
  if (spec.m == 0 || spec.n == 0) {
    product.run = [](const T*, const void*, T*, void*) {};
  } else {
    product.run = [spec](const T* a, const void* b, T* c, void*) {
      multiply(spec, a, static_cast<const T*>(b), c);
    };
  }
  return product;
}

template Product<float> eigen_product<float>(const ProductSpec& spec);
template Product<double> eigen_product<double>(const ProductSpec& spec);

}  // namespace graft
