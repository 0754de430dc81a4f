#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/dtype.h"
#include "core/device/cuda/cuda_device.h"
#include "core/ops/kernels/matmul_cuda.h"

namespace graft {

/// A matrix as cuBLASLt counts it: column by column, `ld` elements from one to the next.
struct LtMatrix {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t ld;
  /// From one entry of the batch to the next; 0 where it repeats.
  std::int64_t step = 0;
  bool is_transposed = false;
};

/// A DeviceProduct as cuBLASLt is asked for it. The rows of y = a' b' are the columns of
/// y^T = b'^T a'^T: b stands first, and nothing is moved.
struct LtProblem {
  /// How c comes in.
  enum class Addend { none, bias, matrix };

  LtMatrix first;   ///< b
  LtMatrix second;  ///< a
  LtMatrix result;  ///< y, and c where that is a matrix
  std::int32_t batch = 1;
  Addend addend = Addend::none;

  /// Nothing for what the library does not take: batches over several axes with unequal steps, a c
  /// that repeats in another way than a row's, sums of nothing.
  static std::optional<LtProblem> from(const DeviceProduct& product);
};

/// A product by cuBLASLt, by the algorithm that it chose when this was made; two runs give the same
/// bits.
class LtProduct {
 public:
  struct Options {
    DType dtype = DType::f32;  ///< of a, b, c and y: f32 or bf16; sums are f32
    bool allows_tf32 = false;
    bool has_rate = false;  ///< see `run`
  };

  /// Null where the library is not there, or has no algorithm.
  static std::shared_ptr<const LtProduct> make(const DeviceProduct& product, const Options& options,
                                               CudaDevice& device);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  std::size_t workspace_bytes() const;
  /// `rate`, where there is one, is a number on the device by whose negative alpha is multiplied. c
  /// may be y. What goes wrong, the device says when it is waited for.
  void run(const void* a, const void* b, const void* c, void* y, const float* rate,
           void* workspace) const;

 private:
  struct State;
  explicit LtProduct(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace graft
