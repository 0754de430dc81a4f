#pragma once

#include <cstdint>
#include <vector>

namespace graft {

/// A complex number whose product is computed without the checks of std::complex.
struct ComplexNumber {
  double re = 0.0;
  double im = 0.0;
};

/// The discrete Fourier transform of any length, in O(n log n): X[k] = sum of x[i] e^(-2 pi i k/n).
/// A power of two by Cooley and Tukey (1965), another length by Bluestein (1970), who writes it as
/// a convolution.
class Fft {
 public:
  /// n >= 1.
  explicit Fft(std::int64_t n);

  /// Complex numbers in the tables of a transform of length n >= 1.
  static std::int64_t table_size(std::int64_t n);

  std::int64_t size() const { return n_; }
  /// Numbers of scratch memory.
  std::int64_t scratch_size() const { return is_power_ ? 0 : m_; }
  /// In place, on n numbers.
  void run(ComplexNumber* x, ComplexNumber* scratch) const;

 private:
  void transform_power(ComplexNumber* x) const;

  std::int64_t n_;
  std::int64_t m_;  ///< a power of two: n, or the length of the convolution
  bool is_power_;
  std::vector<ComplexNumber> roots_;   ///< e^(-2 pi i k/m), k < m/2
  std::vector<ComplexNumber> chirp_;   ///< e^(-pi i k^2/n)
  std::vector<ComplexNumber> filter_;  ///< the transform of what is convolved with, divided by m
};

}  // namespace graft
