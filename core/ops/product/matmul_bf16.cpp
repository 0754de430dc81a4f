// Products a^T b of bf16 over many rows, which gradients of weights are, by sums in registers
// (bf16_product.h): oneDNN turns a piece of a for each piece of b that meets it. Here the narrower
// matrix is turned once, the other passes by, some columns at a time. Start at
// Bf16RowProduct::run_task.
#include "core/ops/product/matmul_bf16.h"

#include <algorithm>
#include <cstdint>

#include "core/base/parallel.h"
#include "core/ops/kernels/bf16_panels.h"
#include "core/ops/kernels/convert_floats.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/matmul.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/kernels/workspace.h"

namespace graft {

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace {

/// Columns of a task.
constexpr std::int64_t kWidth = 64;
/// Rows at a time: their pairs fill a third of a first cache of 48 KiB.
constexpr std::int64_t kRows = 128;

class Bf16RowProduct {
 public:
  Bf16RowProduct(KernelRequest& request, const MatMulProblem& p)
      : rows_(p.k),
        turns_(p.n < p.m),
        narrow_(std::min(p.m, p.n)),
        wide_(std::max(p.m, p.n)),
        pieces_((wide_ + kWidth - 1) / kWidth,
                static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k)) {
    WorkspaceLayout layout;
    columns_ = layout.reserve<BFloat16>(checked_multiply(bf16_padded(rows_), narrow_));
    pairs_ = layout.reserve<Bf16Pair>(pieces_.count * pairs_size());
    sums_ = layout.reserve<float>(checked_multiply(pieces_.count, sums_size()));
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    turn_narrow(args);
    pieces_.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      for (std::int64_t task = first; task < last; ++task) run_task(args, piece, task * kWidth);
    });
  }

 private:
  static constexpr std::int64_t pairs_size() { return kRows / 2 * kWidth; }
  std::int64_t sums_size() const { return narrow_ * kWidth; }

  /// The narrow matrix as [rows / 32][columns][32].
  void turn_narrow(const KernelArgs& args) const {
    const BFloat16* const x = args.input<BFloat16>(turns_ ? 1 : 0);
    auto* const to = workspace_at<BFloat16>(args, columns_);
    parallel_for(bf16_padded(rows_) / kBf16Inner, 4, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t chunk = first; chunk < last; ++chunk) {
        const BFloat16* rows[kBf16Inner];
        for (std::int64_t i = 0; i < kBf16Inner; ++i) {
          const std::int64_t row = chunk * kBf16Inner + i;
          rows[i] = row < rows_ ? x + row * narrow_ : nullptr;
        }
        pack_columns(rows, 0, narrow_, to + chunk * kBf16Inner * narrow_);
      }
    });
  }

  /// Some columns of the wide matrix with all of the narrow one.
  void run_task(const KernelArgs& args, std::int64_t piece, std::int64_t column) const {
    const std::int64_t width = std::min(kWidth, wide_ - column);
    Bf16Pair* const pairs = workspace_at<Bf16Pair>(args, pairs_) + piece * pairs_size();
    float* const sums = workspace_at<float>(args, sums_) + piece * sums_size();
    std::fill_n(sums, sums_size(), 0.0F);
    for (std::int64_t first = 0; first < rows_; first += kRows) {
      const std::int64_t count = std::min(kRows, rows_ - first);
      fill_pairs(args.input<BFloat16>(turns_ ? 0 : 1) + first * wide_ + column, count, width,
                 pairs);
      bf16_product<true>({workspace_at<BFloat16>(args, columns_) + first * narrow_, kBf16Inner,
                          kBf16Inner * narrow_},
                         {pairs, kWidth}, narrow_ / kBf16Side, width / kBf16Side, terms_of(count),
                         sums, kWidth);
    }
    if (turns_) {
      write_turned(sums, width, args.output<BFloat16>() + column * narrow_);
    } else {
      for (std::int64_t i = 0; i < narrow_; ++i) {
        convert_floats(sums + i * kWidth, width, args.output<BFloat16>() + i * wide_ + column);
      }
    }
  }

  /// Pairs of rows; whole chunks of them.
  void fill_pairs(const BFloat16* x, std::int64_t count, std::int64_t width,
                  Bf16Pair* pairs) const {
    static constexpr BFloat16 kZeros[kWidth] = {};
    for (std::int64_t row = 0; row < bf16_padded(count); row += 2, pairs += kWidth) {
      const BFloat16* const first = row < count ? x + row * wide_ : kZeros;
      const BFloat16* const second = row + 1 < count ? x + (row + 1) * wide_ : kZeros;
      for (std::int64_t i = 0; i < width; i += kBf16Side) {
        const Lanes16 both = detail::pairs_of(first + i, second + i);
        std::memcpy(pairs + i, &both, sizeof(both));
      }
    }
  }

  void write_turned(const float* sums, std::int64_t width, BFloat16* to) const {
    for (std::int64_t i = 0; i < narrow_; i += kBf16Side) {
      for (std::int64_t j = 0; j < width; j += kBf16Side) {
        Lanes16 block[kBf16Side];
        unroll<kBf16Side>([&]<int r>() { block[r] = load<16>(sums + (i + r) * kWidth + j); });
        transpose(block);
        unroll<kBf16Side>([&]<int r>() { store(to + (j + r) * narrow_ + i, block[r]); });
      }
    }
  }

  std::int64_t rows_;
  bool turns_;  ///< whether the narrow matrix is b, so that what is summed is c^T
  std::int64_t narrow_;
  std::int64_t wide_;
  Pieces pieces_;
  // Offsets in the workspace.
  std::size_t columns_ = 0;
  std::size_t pairs_ = 0;
  std::size_t sums_ = 0;
};

/// By registers, of columns that fill them, and rows enough that sums seldom come and go.
bool suits(const MatMulProblem& p) {
  constexpr std::int64_t kFewestRows = 512;
  constexpr std::int64_t kMostNarrow = 512;
  return multiplies_bf16_faster() && !may_use_amx() && p.transposes_a && !p.transposes_b &&
         p.batch.empty() && !p.is_empty && p.alpha == 1.0F && p.beta == 0.0F &&
         p.m % kBf16Side == 0 && p.n % kBf16Side == 0 && std::min(p.m, p.n) <= kMostNarrow &&
         p.k >= kFewestRows;
}

}  // namespace

Kernel make_bf16_row_product(KernelRequest& request) {
  if (!is_kernel_dtype<BFloat16>(request.dtype())) return {};
  const MatMulProblem p(request);
  if (!suits(p)) return {};
  return Bf16RowProduct(request, p);
}

#else

Kernel make_bf16_row_product(KernelRequest& /*request*/) {
  return {};
}

#endif

}  // namespace graft
