#pragma once

#include <algorithm>

#include "core/ops/kernels/split_panels.h"

#if defined(GRAFT_HAS_AMX_TILES)

namespace graft {

/// Fills a panel bit by bit: a unit of 16 outers and 32 terms in 16 steps, which a product makes
/// between its own instructions.
template <bool is_left>
class SplitPacker {
 public:
  static constexpr int kSteps = 16;

  SplitPacker(const SplitOperand& operand, const SplitRange& range, SplitPanel& panel)
      : operand_(operand), range_(range), panel_(panel), units_(2 * range.chunks()) {}

  bool has_unit() const { return unit_ < units_; }
  void begin_unit() {
    const std::int64_t outer = unit_ % 2 * kAmxSide;
    const std::int64_t term = unit_ / 2 * kAmxInner;
    to_ = panel_.pairs[unit_ / 2][0][unit_ % 2];
    from_ = operand_.at(range_.outer + outer, range_.term + term);
    step_ = operand_.step;
    if (outer + kAmxSide > range_.outers || term + kAmxInner > range_.terms) fill(outer, term);
    second_ = operand_.is_by_term ? kAmxSide * step_ : kAmxSide;
  }
  template <int i>
  void step() {
    const auto numbers = [&](std::int64_t at) {
      const Lanes16 v = load<16>(from_ + i * step_ + at);
      return is_left ? operand_.factor * v : v;
    };
    detail::Words parts[kSplitParts];
    detail::split(numbers(0), numbers(second_), parts, check_);
    unroll<kSplitParts>(
        [&]<int part>() { std::memcpy(row_of(part, i), &parts[part], sizeof(parts[part])); });
  }
  void end_unit() {
    if (operand_.is_by_term == is_left) unroll<kSplitParts>([&]<int part>() { turn(part); });
    ++unit_;
  }
  /// All that is left.
  void finish() {
    while (has_unit()) {
      begin_unit();
      unroll<kSteps>([&]<int i>() { step<i>(); });
      end_unit();
    }
    panel_.is_plain = has_nan(check_);
    if (panel_.is_plain) write_plain();
  }

 private:
  static bool has_nan(const Lanes16& v) {
    bool has = false;
    for (int i = 0; i < 16; ++i) has |= v[i] != v[i];
    return has;
  }

  Bf16Pair* row_of(int part, int i) const { return to_ + part * kPart + i * kAmxSide; }

  void turn(int part) const {
    Lanes16 rows[16];
    unroll<16>([&]<int i>() { std::memcpy(&rows[i], row_of(part, i), sizeof(rows[i])); });
    transpose(rows);
    unroll<16>([&]<int i>() { std::memcpy(row_of(part, i), &rows[i], sizeof(rows[i])); });
  }

  /// What there is of a unit at the end, and zeros.
  void fill(std::int64_t outer, std::int64_t term) {
    const std::int64_t outers =
        std::clamp<std::int64_t>(range_.outers - outer, 0, std::int64_t{kAmxSide});
    const std::int64_t terms = std::min(kAmxInner, range_.terms - term);
    const std::int64_t rows = operand_.is_by_term ? terms : outers;
    const std::int64_t columns = operand_.is_by_term ? outers : terms;
    std::fill_n(filled_, kAmxInner * kAmxInner, 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(from_ + row * step_, columns, filled_ + row * kAmxInner);
    }
    from_ = filled_;
    step_ = kAmxInner;
  }

  void write_plain() const {
    float* const to = panel_.plain();
    std::fill_n(to, range_.terms * kSplitSide, 0.0F);
    for (std::int64_t k = 0; k < range_.terms; ++k) {
      for (std::int64_t i = 0; i < range_.outers; ++i) {
        const float number = *operand_.at(range_.outer + i, range_.term + k);
        to[k * kSplitSide + i] = is_left ? operand_.factor * number : number;
      }
    }
  }

  static constexpr std::int64_t kPart = 2 * SplitPanel::kTilePairs;

  SplitOperand operand_;
  SplitRange range_;
  SplitPanel& panel_;
  std::int64_t units_;
  std::int64_t unit_ = 0;
  Bf16Pair* to_ = nullptr;
  const float* from_ = nullptr;
  std::int64_t step_ = 0;
  std::int64_t second_ = 0;  ///< from the first numbers of a pair to the second
  Lanes16 check_ = {};
  float filled_[kAmxInner * kAmxInner];
};

}  // namespace graft

#endif
