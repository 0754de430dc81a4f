#include "core/ops/kernels/split_product.h"

#include <bit>
#include <cstdlib>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/amx.h"
#include "core/ops/kernels/panel_block.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {
namespace {

/// Panels of the smaller operand that a thread keeps in its second cache while those of the larger
/// one pass by.
constexpr std::int64_t kMostKept = 8;

std::int64_t kept_at_once(const ProductSpec& p) {
  return std::min(kMostKept, panels_of(std::min(p.m, p.n)));
}
/// What it keeps, and two that pass by turns.
std::int64_t panels_a_thread(const ProductSpec& p) {
  return kept_at_once(p) + 2;
}

template <bool is_left>
void fill(OperandPacker<is_left>&& packer, OperandPanel& panel) {
  panel.is_plain = !packer.finish();
  if (panel.is_plain) packer.write_plain(panel.plain());
}

/// The numbers of a panel, one after the other: [terms][kPanelSide].
void unpack(const OperandPanel& panel, bool is_left, std::int64_t terms, float* to) {
  if (panel.is_plain) {
    std::copy_n(panel.plain(), terms * kPanelSide, to);
    return;
  }
  for (std::int64_t term = 0; term < terms; ++term) {
    const std::int64_t pair = term % kBf16Side;
    const bool is_second = term % kBf16Inner >= kBf16Side;
    for (std::int64_t outer = 0; outer < kPanelSide; ++outer, ++to) {
      const std::int64_t lane = outer % kBf16Side;
      const std::int64_t place = is_left ? lane * kBf16Side + pair : pair * kBf16Side + lane;
      *to = 0.0F;
      for (int part = 0; part < kParts; ++part) {
        const Bf16Pair both = panel.chunks[term / kBf16Inner][part][outer / kBf16Side][place];
        *to += std::bit_cast<float>(is_second ? both & detail::kFirstHalf : both << 16);
      }
    }
  }
}

/// Where infinities and NaN are: their parts would make NaN of infinities.
void multiply_plain(const OperandPanel& left, const OperandPanel& right, std::int64_t terms,
                    float* sums) {
  float a[kPanelTerms * kPanelSide];
  float b[kPanelTerms * kPanelSide];
  unpack(left, true, terms, a);
  unpack(right, false, terms, b);
  std::fill_n(sums, kPanelSide * kPanelSide, 0.0F);
  for (std::int64_t row = 0; row < kPanelSide; ++row, sums += kPanelSide) {
    for (std::int64_t k = 0; k < terms; ++k) {
      const float factor = a[k * kPanelSide + row];
#pragma omp simd
      for (std::int64_t i = 0; i < kPanelSide; ++i) sums[i] += factor * b[k * kPanelSide + i];
    }
  }
}

/// What the calling thread makes of a product: `passing` of its panels, with all of the others.
template <bool keeps_left>
class Part {
 public:
  Part(const ProductSpec& p, float alpha, const float* a, const void* b, float* c,
       OperandPanel* scratch)
      : p_(p),
        a_{a, p.lda, p.transposes_a, alpha},
        b_{p.packs_b ? nullptr : static_cast<const float*>(b), p.ldb, !p.transposes_b},
        packed_(p.packs_b ? static_cast<const OperandPanel*>(b) : nullptr),
        c_(c),
        kept_(scratch),
        passing_(scratch + kept_at_once(p)) {}

  void run(std::int64_t first, std::int64_t last, const Addend& addend) {
    const AmxTiles tiles;
    const std::int64_t kept = panels_of(keeps_left ? p_.m : p_.n);
    for (std::int64_t term = 0; term < p_.k; term += kPanelTerms) {
      const Addend before = term == 0 ? addend : Addend{c_, p_.ldc};
      for (std::int64_t kept_first = 0; kept_first < kept; kept_first += kept_at_once(p_)) {
        pass(kept_first, std::min(kept_first + kept_at_once(p_), kept), first, last, term, before);
      }
    }
  }

 private:
  static constexpr bool kPassesLeft = !keeps_left;
  using Kept = OperandPacker<keeps_left>;
  using Passing = OperandPacker<kPassesLeft>;

  /// Panels of b that were made before the run.
  template <bool is_left>
  bool is_packed() const {
    return !is_left && packed_ != nullptr;
  }
  template <bool is_left>
  const OperandPanel& place(std::int64_t panel, std::int64_t term, const OperandPanel& own) const {
    if (!is_packed<is_left>()) return own;
    return packed_[term / kPanelTerms * panels_of(p_.n) + panel];
  }
  template <bool is_left>
  PanelRange range(std::int64_t panel, std::int64_t term) const {
    return PanelRange::of(panel, is_left ? p_.m : p_.n, term, p_.k);
  }
  /// Fills `to`; has nothing to do where the panel is packed or not wanted.
  template <bool is_left>
  OperandPacker<is_left> packer(std::int64_t panel, std::int64_t term, bool is_wanted,
                                OperandPanel& to) const {
    PanelRange wanted{};
    if (is_wanted && !is_packed<is_left>()) wanted = range<is_left>(panel, term);
    return {is_left ? a_ : b_, wanted, to.chunks};
  }

  void pass(std::int64_t kept_first, std::int64_t kept_last, std::int64_t first, std::int64_t last,
            std::int64_t term, const Addend& before) {
    for (std::int64_t i = kept_first; i < kept_last; ++i) {
      fill(packer<keeps_left>(i, term, true, kept_[i - kept_first]), kept_[i - kept_first]);
    }
    fill(packer<kPassesLeft>(first, term, true, passing_[first % 2]), passing_[first % 2]);
    for (std::int64_t i = first; i < last; ++i) {
      const OperandPanel& passing = place<kPassesLeft>(i, term, passing_[i % 2]);
      Passing next = packer<kPassesLeft>(i + 1, term, i + 1 < last, passing_[(i + 1) % 2]);
      for (std::int64_t j = kept_first; j < kept_last; ++j) {
        const OperandPanel& kept = place<keeps_left>(j, term, kept_[j - kept_first]);
        multiply(kept, passing, keeps_left ? j : i, keeps_left ? i : j, term, before, next);
      }
      fill(std::move(next), passing_[(i + 1) % 2]);
    }
  }

  void multiply(const OperandPanel& kept, const OperandPanel& passing, std::int64_t row_panel,
                std::int64_t column_panel, std::int64_t term, const Addend& before, Passing& next) {
    const PanelRange rows = range<true>(row_panel, term);
    const PanelRange columns = range<false>(column_panel, term);
    const PanelBlock block{c_ + rows.outer * p_.ldc + columns.outer, p_.ldc, rows.outers,
                           columns.outers};
    alignas(64) float sums[kPanelSide * kPanelSide];
    if (kept.is_plain || passing.is_plain) {
      multiply_plain(keeps_left ? kept : passing, keeps_left ? passing : kept, rows.terms, sums);
    } else {
      clear_sums();
      for (std::int64_t i = 0; i < rows.chunks(); ++i) {
        block.prefetch(i, rows.chunks());
        add_chunk<keeps_left>(kept.chunks[i], passing.chunks[i], next);
      }
      if (before.data == nullptr && block.is_whole()) {
        store_sums(block.data, block.step);
        return;
      }
      store_sums(sums, kPanelSide);
    }
    write_sums(sums, before.from(rows.outer, columns.outer), block);
  }

  ProductSpec p_;
  PanelOperand a_;
  PanelOperand b_;
  const OperandPanel* packed_;
  float* c_;
  OperandPanel* kept_;
  OperandPanel* passing_;  ///< two, by turns
};

}  // namespace

bool may_split() {
  return std::getenv("GRAFT_ISA") == nullptr && may_use_amx();
}

bool suits_split(const ProductSpec& p) {
  constexpr std::int64_t kLeastSide = 48;
  constexpr double kLeastWork = 1 << 18;
  if (std::min(p.m, p.n) < kLeastSide || p.k < kBf16Inner) return false;
  const std::int64_t filled = (p.k + kBf16Inner - 1) / kBf16Inner * kBf16Inner;
  const double work =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  return 2 * filled <= 3 * p.k && work >= kLeastWork && may_split();
}

SplitProduct::SplitProduct(const ProductSpec& spec)
    : spec_(spec), threads_(spec.is_serial ? 1 : thread_count()) {}

std::size_t SplitProduct::scratch_bytes() const {
  return static_cast<std::size_t>(threads_ * panels_a_thread(spec_)) * sizeof(OperandPanel);
}

std::size_t SplitProduct::packed_bytes() const {
  return static_cast<std::size_t>(checked_multiply(
      checked_multiply(term_blocks_of(spec_.k), panels_of(spec_.n)), sizeof(OperandPanel)));
}

void SplitProduct::pack(const float* b, void* packed) const {
  const PanelOperand operand{b, spec_.ldb, !spec_.transposes_b};
  const std::int64_t count = panels_of(spec_.n);
  auto* const panels = static_cast<OperandPanel*>(packed);
  parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t term = 0; term < spec_.k; term += kPanelTerms) {
      for (std::int64_t i = first; i < last; ++i) {
        const PanelRange range = PanelRange::of(i, spec_.n, term, spec_.k);
        OperandPanel& panel = panels[term / kPanelTerms * count + i];
        fill(OperandPacker<false>(operand, range, panel.chunks), panel);
      }
    }
  });
}

void SplitProduct::run(float alpha, const float* a, const void* b, const Addend& addend, float* c,
                       void* scratch) const {
  const bool keeps_left = spec_.m < spec_.n;
  const std::int64_t passing = panels_of(keeps_left ? spec_.n : spec_.m);
  auto* const panels = static_cast<OperandPanel*>(scratch);
  parallel_for(threads_, 1, [&](std::int64_t first_thread, std::int64_t last_thread) {
    for (std::int64_t i = first_thread; i < last_thread; ++i) {
      const std::int64_t first = passing * i / threads_;
      const std::int64_t last = passing * (i + 1) / threads_;
      if (first == last) continue;
      OperandPanel* const own = panels + i * panels_a_thread(spec_);
      if (keeps_left) {
        Part<true>(spec_, alpha, a, b, c, own).run(first, last, addend);
      } else {
        Part<false>(spec_, alpha, a, b, c, own).run(first, last, addend);
      }
    }
  });
}

Product<float> split_product(const ProductSpec& spec) {
  if (!suits_split(spec)) return plain_product<float>(spec);
  const SplitProduct split(spec);
  Product<float> product;
  product.scratch_bytes = split.scratch_bytes();
  if (spec.packs_b) {
    product.packed_bytes = split.packed_bytes();
    product.pack = [split](const float* b, void* packed) { split.pack(b, packed); };
  }
  product.run = [split, spec](const float* a, const void* b, float* c, void* scratch) {
    split.run(1.0F, a, b, spec.adds ? Addend{c, spec.ldc} : Addend{}, c, scratch);
  };
  return product;
}

}  // namespace graft

#endif
