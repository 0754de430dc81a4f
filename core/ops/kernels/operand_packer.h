#pragma once

#include <algorithm>

#include "core/ops/kernels/operand_panels.h"
#include "core/ops/kernels/transpose.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {

/// Fills a panel bit by bit: a unit of 16 outers and 32 terms in 16 steps, which a product makes
/// between its own instructions.
template <bool is_left>
class OperandPacker {
 public:
  static constexpr int kSteps = 16;

  OperandPacker(const PanelOperand& operand, const PanelRange& range, PanelChunk* chunks)
      : operand_(operand), range_(range), chunks_(chunks), units_(2 * range.chunks()) {}

  bool has_unit() const { return unit_ < units_; }
  void begin_unit() {
    const std::int64_t outer = unit_ % 2 * kBf16Side;
    const std::int64_t term = unit_ / 2 * kBf16Inner;
    to_ = chunks_[unit_ / 2][0][unit_ % 2];
    from_ = operand_.at(range_.outer + outer, range_.term + term);
    step_ = operand_.step;
    if (outer + kBf16Side > range_.outers || term + kBf16Inner > range_.terms) fill(outer, term);
    second_ = operand_.is_by_term ? kBf16Side * step_ : kBf16Side;
  }
  template <int i>
  void step() {
    const float* const first = from_ + i * step_;
    detail::Words parts[kParts];
    detail::split(numbers(first), numbers(first + second_), parts, check_);
    unroll<kParts>(
        [&]<int part>() { std::memcpy(row_of(part, i), &parts[part], sizeof(parts[part])); });
  }
  void end_unit() {
    if (operand_.is_by_term == is_left) unroll<kParts>([&]<int part>() { turn(part); });
    ++unit_;
  }
  /// All that is left. False where parts are no numbers.
  bool finish() {
    while (has_unit()) {
      begin_unit();
      unroll<kSteps>([&]<int i>() { step<i>(); });
      end_unit();
    }
    return !has_nan(check_);
  }
  /// The numbers themselves: [terms][kPanelSide].
  void write_plain(float* to) const {
    std::fill_n(to, range_.terms * kPanelSide, 0.0F);
    for (std::int64_t k = 0; k < range_.terms; ++k) {
      for (std::int64_t i = 0; i < range_.outers; ++i) {
        const float number = *operand_.at(range_.outer + i, range_.term + k);
        to[k * kPanelSide + i] = is_left ? operand_.factor * number : number;
      }
    }
  }

 private:
  static constexpr std::int64_t kPart = 2 * kTilePairs;

  Lanes16 numbers(const float* from) const {
    const Lanes16 v = load<16>(from);
    return is_left ? operand_.factor * v : v;
  }

  Bf16Pair* row_of(int part, int i) const { return to_ + part * kPart + i * kBf16Side; }

  void turn(int part) const {
    Lanes16 rows[16];
    unroll<16>([&]<int i>() { std::memcpy(&rows[i], row_of(part, i), sizeof(rows[i])); });
    transpose(rows);
    unroll<16>([&]<int i>() { std::memcpy(row_of(part, i), &rows[i], sizeof(rows[i])); });
  }

  /// What there is of a unit at the end, and zeros.
  void fill(std::int64_t outer, std::int64_t term) {
    const std::int64_t outers =
        std::clamp<std::int64_t>(range_.outers - outer, 0, std::int64_t{kBf16Side});
    const std::int64_t terms = std::min(kBf16Inner, range_.terms - term);
    const std::int64_t rows = operand_.is_by_term ? terms : outers;
    const std::int64_t columns = operand_.is_by_term ? outers : terms;
    std::fill_n(filled_, kBf16Inner * kBf16Inner, 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(from_ + row * step_, columns, filled_ + row * kBf16Inner);
    }
    from_ = filled_;
    step_ = kBf16Inner;
  }

  PanelOperand operand_;
  PanelRange range_;
  PanelChunk* chunks_;
  std::int64_t units_;
  std::int64_t unit_ = 0;
  Bf16Pair* to_ = nullptr;
  const float* from_ = nullptr;
  std::int64_t step_ = 0;
  std::int64_t second_ = 0;  ///< from the first numbers of a pair to the second
  Lanes16 check_ = {};
  float filled_[kBf16Inner * kBf16Inner];
};

}  // namespace graft

#endif
