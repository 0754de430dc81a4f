#include "core/ops/kernels/split_product.h"

#include <bit>
#include <cstdlib>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/amx.h"
#include "core/ops/kernels/split_packer.h"

#if defined(GRAFT_HAS_AMX_TILES)

namespace graft {
namespace {

/// Panels of the smaller operand that a thread keeps in its second cache while those of the larger
/// one pass by.
constexpr std::int64_t kKept = 8;

std::int64_t panels_of(std::int64_t count) {
  return (count + kSplitSide - 1) / kSplitSide;
}

/// A block of c.
struct Block {
  float* data;
  std::int64_t step;
  std::int64_t rows;
  std::int64_t columns;

  bool is_whole() const { return rows == kSplitSide && columns == kSplitSide; }
  /// Asks for the lines of some rows, which are soon written.
  void prefetch(std::int64_t first, std::int64_t last) const {
    constexpr int kForWriting = 1;
    for (std::int64_t row = first; row < last; ++row) {
      for (std::int64_t i = 0; i < kSplitSide; i += kAmxSide) {
        __builtin_prefetch(data + row * step + i, kForWriting);
      }
    }
  }
};

/// A tile that is read once: it need not stay in the first cache, where the panel that passes by
/// is.
template <int tile>
void load_tile_once(const void* from) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2"
               :
               : "r"(from), "r"(kAmxSide * std::int64_t{sizeof(Bf16Pair)}), "i"(tile)
               : "memory");
}

/// Two panels' product in the first four tiles, whose rows the kept panel gives with keeps_left.
/// Small parts come first, so that what they add up to is not lost. In between, `packer` does units
/// of its own while the tiles are busy.
template <bool keeps_left, class Packer>
void multiply_panels(const SplitPanel& kept, const SplitPanel& passing, std::int64_t chunks,
                     const Block& c, Packer& packer) {
  using detail::load_tile;
  constexpr int kKeptTile = 4;
  constexpr int kPassingTile = 6;
  constexpr std::int64_t kRow = kAmxSide * std::int64_t{sizeof(Bf16Pair)};
  unroll<4>([&]<int i>() { detail::clear_tile<i>(); });
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const bool packs = packer.has_unit();
    if (packs) packer.begin_unit();
    c.prefetch(c.rows * chunk / chunks, c.rows * (chunk + 1) / chunks);
    const auto& kept_tiles = kept.pairs[chunk];
    const auto& passing_tiles = passing.pairs[chunk];
    const auto add = [&]<int half>(int part) {
      load_tile<kPassingTile + half>(passing_tiles[part][half], kRow);
      if constexpr (keeps_left) {
        detail::multiply_tiles<half, kKeptTile, kPassingTile + half>();
        detail::multiply_tiles<2 + half, kKeptTile + 1, kPassingTile + half>();
      } else {
        detail::multiply_tiles<2 * half, kPassingTile + half, kKeptTile>();
        detail::multiply_tiles<2 * half + 1, kPassingTile + half, kKeptTile + 1>();
      }
    };
    // Six products of parts, each with three of the packer's steps.
    const auto multiply = [&]<int at>(int part) {
      add.template operator()<0>(part);
      add.template operator()<1>(part);
      if (!packs) return;
      unroll<3>([&]<int i>() {
        if constexpr (3 * at + i < Packer::kSteps) packer.template step<3 * at + i>();
      });
    };
    const auto keep = [&](int part) {
      load_tile_once<kKeptTile>(kept_tiles[part][0]);
      load_tile_once<kKeptTile + 1>(kept_tiles[part][1]);
    };
    keep(2);
    multiply.template operator()<0>(0);
    keep(1);
    multiply.template operator()<1>(1);
    multiply.template operator()<2>(0);
    keep(0);
    multiply.template operator()<3>(2);
    multiply.template operator()<4>(1);
    multiply.template operator()<5>(0);
    if (packs) packer.end_unit();
  }
}

void store_tiles(float* to, std::int64_t step) {
  const std::int64_t bytes = step * std::int64_t{sizeof(float)};
  detail::store_tile<0>(to, bytes);
  detail::store_tile<1>(to + kAmxSide, bytes);
  detail::store_tile<2>(to + kAmxSide * step, bytes);
  detail::store_tile<3>(to + kAmxSide * step + kAmxSide, bytes);
}

void write_sum(const float* sums, const Addend& addend, const Block& c) {
  for (std::int64_t row = 0; row < c.rows; ++row, sums += kSplitSide) {
    const float* const before = addend.from(row, 0).data;
    float* const to = c.data + row * c.step;
    for_each_lanes(c.columns, [&]<int lanes>(std::int64_t i) {
      const Lanes<lanes> sum = load<lanes>(sums + i);
      store(to + i, before == nullptr ? sum : load<lanes>(before + i) + sum);
    });
  }
}

/// The numbers of a panel, one after the other: [terms][kSplitSide].
void unpack(const SplitPanel& panel, bool is_left, std::int64_t terms, float* to) {
  if (panel.is_plain) {
    std::copy_n(panel.plain(), terms * kSplitSide, to);
    return;
  }
  for (std::int64_t term = 0; term < terms; ++term) {
    const std::int64_t pair = term % kAmxSide;
    const bool is_second = term % kAmxInner >= kAmxSide;
    for (std::int64_t outer = 0; outer < kSplitSide; ++outer, ++to) {
      const std::int64_t lane = outer % kAmxSide;
      const std::int64_t place = is_left ? lane * kAmxSide + pair : pair * kAmxSide + lane;
      *to = 0.0F;
      for (int part = 0; part < kSplitParts; ++part) {
        const Bf16Pair both = panel.pairs[term / kAmxInner][part][outer / kAmxSide][place];
        *to += std::bit_cast<float>(is_second ? both & detail::kFirstHalf : both << 16);
      }
    }
  }
}

/// Where infinities and NaN are: their parts would make NaN of infinities.
void multiply_plain(const SplitPanel& left, const SplitPanel& right, std::int64_t terms,
                    float* sums) {
  float a[kSplitTerms * kSplitSide];
  float b[kSplitTerms * kSplitSide];
  unpack(left, true, terms, a);
  unpack(right, false, terms, b);
  std::fill_n(sums, kSplitSide * kSplitSide, 0.0F);
  for (std::int64_t row = 0; row < kSplitSide; ++row, sums += kSplitSide) {
    for (std::int64_t k = 0; k < terms; ++k) {
      const float factor = a[k * kSplitSide + row];
#pragma omp simd
      for (std::int64_t i = 0; i < kSplitSide; ++i) sums[i] += factor * b[k * kSplitSide + i];
    }
  }
}

/// What the calling thread makes of a product: `passing` of its panels, with all of the others.
template <bool keeps_left>
class Part {
 public:
  Part(const ProductSpec& p, float alpha, const float* a, const void* b, float* c,
       SplitPanel* scratch)
      : p_(p),
        a_{a, p.lda, p.transposes_a, alpha},
        b_{p.packs_b ? nullptr : static_cast<const float*>(b), p.ldb, !p.transposes_b},
        packed_(p.packs_b ? static_cast<const SplitPanel*>(b) : nullptr),
        c_(c),
        kept_(scratch),
        passing_(scratch + kKept) {}

  void run(std::int64_t first, std::int64_t last, const Addend& addend) {
    const AmxTiles tiles;
    const std::int64_t kept = panels_of(keeps_left ? p_.m : p_.n);
    for (std::int64_t term = 0; term < p_.k; term += kSplitTerms) {
      const Addend before = term == 0 ? addend : Addend{c_, p_.ldc};
      for (std::int64_t kept_first = 0; kept_first < kept; kept_first += kKept) {
        pass(kept_first, std::min(kept_first + kKept, kept), first, last, term, before);
      }
    }
  }

 private:
  static constexpr bool kPassesLeft = !keeps_left;
  using Kept = SplitPacker<keeps_left>;
  using Passing = SplitPacker<kPassesLeft>;

  /// Panels of b that were made before the run.
  template <bool is_left>
  bool is_packed() const {
    return !is_left && packed_ != nullptr;
  }
  template <bool is_left>
  const SplitPanel& place(std::int64_t panel, std::int64_t term, const SplitPanel& own) const {
    if (!is_packed<is_left>()) return own;
    return packed_[term / kSplitTerms * panels_of(p_.n) + panel];
  }
  template <bool is_left>
  SplitRange range(std::int64_t panel, std::int64_t term) const {
    const std::int64_t outer = panel * kSplitSide;
    return {outer, std::min(kSplitSide, (is_left ? p_.m : p_.n) - outer), term,
            std::min(kSplitTerms, p_.k - term)};
  }
  /// Fills `to`; has nothing to do where the panel is packed or not wanted.
  template <bool is_left>
  SplitPacker<is_left> packer(std::int64_t panel, std::int64_t term, bool is_wanted,
                              SplitPanel& to) const {
    SplitRange wanted{};
    if (is_wanted && !is_packed<is_left>()) wanted = range<is_left>(panel, term);
    return {is_left ? a_ : b_, wanted, to};
  }

  void pass(std::int64_t kept_first, std::int64_t kept_last, std::int64_t first, std::int64_t last,
            std::int64_t term, const Addend& before) {
    for (std::int64_t i = kept_first; i < kept_last; ++i) {
      packer<keeps_left>(i, term, true, kept_[i - kept_first]).finish();
    }
    packer<kPassesLeft>(first, term, true, passing_[first % 2]).finish();
    for (std::int64_t i = first; i < last; ++i) {
      const SplitPanel& passing = place<kPassesLeft>(i, term, passing_[i % 2]);
      Passing next = packer<kPassesLeft>(i + 1, term, i + 1 < last, passing_[(i + 1) % 2]);
      for (std::int64_t j = kept_first; j < kept_last; ++j) {
        const SplitPanel& kept = place<keeps_left>(j, term, kept_[j - kept_first]);
        multiply(kept, passing, keeps_left ? j : i, keeps_left ? i : j, term, before, next);
      }
      next.finish();
    }
  }

  void multiply(const SplitPanel& kept, const SplitPanel& passing, std::int64_t row_panel,
                std::int64_t column_panel, std::int64_t term, const Addend& before, Passing& next) {
    const SplitRange rows = range<true>(row_panel, term);
    const SplitRange columns = range<false>(column_panel, term);
    const Block block{c_ + rows.outer * p_.ldc + columns.outer, p_.ldc, rows.outers,
                      columns.outers};
    alignas(64) float sums[kSplitSide * kSplitSide];
    if (kept.is_plain || passing.is_plain) {
      multiply_plain(keeps_left ? kept : passing, keeps_left ? passing : kept, rows.terms, sums);
    } else {
      multiply_panels<keeps_left>(kept, passing, rows.chunks(), block, next);
      if (before.data == nullptr && block.is_whole()) {
        store_tiles(block.data, block.step);
        return;
      }
      store_tiles(sums, kSplitSide);
    }
    write_sum(sums, before.from(rows.outer, columns.outer), block);
  }

  ProductSpec p_;
  SplitOperand a_;
  SplitOperand b_;
  const SplitPanel* packed_;
  float* c_;
  SplitPanel* kept_;
  SplitPanel* passing_;  ///< two, by turns
};

}  // namespace

bool suits_split(const ProductSpec& p) {
  constexpr std::int64_t kLeastSide = 48;
  constexpr double kLeastWork = 1 << 18;
  if (std::min(p.m, p.n) < kLeastSide || p.k < kAmxInner) return false;
  const std::int64_t filled = (p.k + kAmxInner - 1) / kAmxInner * kAmxInner;
  const double work =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  return 2 * filled <= 3 * p.k && work >= kLeastWork && std::getenv("GRAFT_ISA") == nullptr &&
         may_use_amx();
}

SplitProduct::SplitProduct(const ProductSpec& spec)
    : spec_(spec), threads_(spec.is_serial ? 1 : thread_count()) {}

std::size_t SplitProduct::scratch_bytes() const {
  return static_cast<std::size_t>(threads_ * (kKept + 2)) * sizeof(SplitPanel);
}

std::size_t SplitProduct::packed_bytes() const {
  const std::int64_t blocks = (spec_.k + kSplitTerms - 1) / kSplitTerms;
  return static_cast<std::size_t>(
      checked_multiply(checked_multiply(blocks, panels_of(spec_.n)), sizeof(SplitPanel)));
}

void SplitProduct::pack(const float* b, void* packed) const {
  const SplitOperand operand{b, spec_.ldb, !spec_.transposes_b};
  const std::int64_t count = panels_of(spec_.n);
  auto* const panels = static_cast<SplitPanel*>(packed);
  parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t term = 0; term < spec_.k; term += kSplitTerms) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t outer = i * kSplitSide;
        const SplitRange range{outer, std::min(kSplitSide, spec_.n - outer), term,
                               std::min(kSplitTerms, spec_.k - term)};
        SplitPacker<false>(operand, range, panels[term / kSplitTerms * count + i]).finish();
      }
    }
  });
}

void SplitProduct::run(float alpha, const float* a, const void* b, const Addend& addend, float* c,
                       void* scratch) const {
  const bool keeps_left = spec_.m < spec_.n;
  const std::int64_t passing = panels_of(keeps_left ? spec_.n : spec_.m);
  auto* const panels = static_cast<SplitPanel*>(scratch);
  parallel_for(threads_, 1, [&](std::int64_t first_thread, std::int64_t last_thread) {
    for (std::int64_t i = first_thread; i < last_thread; ++i) {
      const std::int64_t first = passing * i / threads_;
      const std::int64_t last = passing * (i + 1) / threads_;
      if (first == last) continue;
      SplitPanel* const own = panels + i * (kKept + 2);
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
