#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/ops/signal/fft.h"

namespace graft {
namespace {

ComplexNumber operator*(ComplexNumber a, ComplexNumber b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
ComplexNumber operator+(ComplexNumber a, ComplexNumber b) {
  return {a.re + b.re, a.im + b.im};
}
ComplexNumber operator-(ComplexNumber a, ComplexNumber b) {
  return {a.re - b.re, a.im - b.im};
}
ComplexNumber conjugate(ComplexNumber a) {
  return {a.re, -a.im};
}
/// e^(-i angle)
ComplexNumber root(double angle) {
  return {std::cos(angle), -std::sin(angle)};
}

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

bool is_power_of_two(std::int64_t n) {
  return std::has_single_bit(static_cast<std::uint64_t>(n));
}

/// The power of two that holds a convolution of length n.
std::int64_t convolution_length(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * n - 1)));
}

}  // namespace

std::int64_t Fft::table_size(std::int64_t n) {
  constexpr std::int64_t kHopeless = std::int64_t{1} << 40;
  if (n > kHopeless) return n;
  if (is_power_of_two(n)) return n / 2;
  const std::int64_t m = convolution_length(n);
  return m / 2 + n + m;
}

Fft::Fft(std::int64_t n)
    : n_(n), m_(is_power_of_two(n) ? n : convolution_length(n)), is_power_(is_power_of_two(n)) {
  roots_.reserve(index(m_ / 2));
  chirp_.reserve(is_power_ ? 0 : index(n));
  const double step = 2 * std::numbers::pi / static_cast<double>(m_);
  for (std::int64_t k = 0; k < m_ / 2; ++k) roots_.push_back(root(step * static_cast<double>(k)));
  if (is_power_) return;
  std::int64_t square = 0;  // k^2 modulo 2n: the angle stays small and exact
  for (std::int64_t k = 0; k < n; ++k) {
    chirp_.push_back(root(std::numbers::pi * static_cast<double>(square) / static_cast<double>(n)));
    square = (square + 2 * k + 1) % (2 * n);
  }
  filter_.resize(index(m_));
  const double share = 1.0 / static_cast<double>(m_);
  for (std::int64_t k = 0; k < n; ++k) {
    const ComplexNumber value = conjugate(chirp_[index(k)]);
    filter_[index(k)] = {value.re * share, value.im * share};
    if (k > 0) filter_[index(m_ - k)] = filter_[index(k)];
  }
  transform_power(filter_.data());
}

void Fft::transform_power(ComplexNumber* x) const {
  for (std::int64_t i = 1, reversed = 0; i < m_; ++i) {
    std::int64_t bit = m_ / 2;
    for (; (reversed & bit) != 0; bit /= 2) reversed ^= bit;
    reversed ^= bit;
    if (i < reversed) std::swap(x[i], x[reversed]);
  }
  for (std::int64_t half = 1; half < m_; half *= 2) {
    const std::int64_t step = m_ / (2 * half);
    for (std::int64_t start = 0; start < m_; start += 2 * half) {
      for (std::int64_t k = 0; k < half; ++k) {
        const ComplexNumber even = x[start + k];
        const ComplexNumber odd = x[start + k + half] * roots_[index(k * step)];
        x[start + k] = even + odd;
        x[start + k + half] = even - odd;
      }
    }
  }
}

void Fft::run(ComplexNumber* x, ComplexNumber* scratch) const {
  if (is_power_) return transform_power(x);
  // With i k = (i^2 + k^2 - (k - i)^2) / 2 the sum is a convolution with the conjugate chirp.
  for (std::int64_t i = 0; i < n_; ++i) scratch[i] = x[i] * chirp_[index(i)];
  std::fill(scratch + n_, scratch + m_, ComplexNumber{});
  transform_power(scratch);
  // The inverse transform is the conjugate of the transform of the conjugate.
  for (std::int64_t i = 0; i < m_; ++i) scratch[i] = conjugate(scratch[i] * filter_[index(i)]);
  transform_power(scratch);
  for (std::int64_t i = 0; i < n_; ++i) x[i] = conjugate(scratch[i]) * chirp_[index(i)];
}

}  // namespace graft
