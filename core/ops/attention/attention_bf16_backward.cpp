// As tiled_attention_backward.cpp, of bf16: all products by tiles (bf16_product.h), with p and
// ds rounded for those that sum over queries (rows) or over keys (pairs of them).
#include "core/ops/attention/attention_bf16.h"
#include "core/ops/attention/tiled_attention.h"
#include "core/ops/kernels/convert_floats.h"
#include "core/ops/kernels/workspace.h"

namespace graft {

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace {

/// Keys of a tile: one chunk, so that what is made for it and all that it reads of the queries fit
/// in a first-level cache of 48 KiB at a depth of 16.
constexpr std::int64_t kTileKeys = kBf16Inner;

/// How problems are cut, and the scratch memory of a thread. Offsets in bytes.
struct Cut {
  explicit Cut(const AttentionGeometry& n)
      : ranges(n, kTileKeys),
        keys(bf16_padded(std::min(ranges.keys, n.keys))),
        depth(bf16_padded(n.depth)),
        value_depth(bf16_padded(n.value_depth)) {
    WorkspaceLayout layout;
    const auto panel = [&](std::int64_t rows, std::int64_t width) {
      return layout.reserve<BFloat16>(checked_multiply(rows, width));
    };
    q = panel(kTileQueries, depth);
    q_rows = panel(kTileQueries, depth);
    q_columns = panel(kTileQueries, depth);
    dy = panel(kTileQueries, value_depth);
    dy_rows = panel(kTileQueries, value_depth);
    dy_columns = panel(kTileQueries, value_depth);
    k = panel(keys, depth);
    k_columns = panel(keys, depth);
    v = panel(keys, value_depth);
    p_rows = panel(kTileKeys, kTileQueries);
    ds_rows = panel(kTileKeys, kTileQueries);
    ds_pairs = panel(kTileKeys, kTileQueries);
    p = layout.reserve<float>(kTileKeys * kTileQueries);
    ds = layout.reserve<float>(kTileKeys * kTileQueries);
    dq = layout.reserve<float>(depth * kTileQueries);
    dk = layout.reserve<float>(checked_multiply(keys, depth));
    dv = layout.reserve<float>(checked_multiply(keys, value_depth));
    bytes = layout.bytes();
  }

  KeyRanges ranges;
  std::int64_t keys;
  std::int64_t depth;
  std::int64_t value_depth;
  std::size_t q;
  std::size_t q_rows;     ///< pairs of queries
  std::size_t q_columns;  ///< pairs along the depth
  std::size_t dy;
  std::size_t dy_rows;
  std::size_t dy_columns;
  std::size_t k;
  std::size_t k_columns;
  std::size_t v;
  std::size_t p_rows;  ///< [key][query]
  std::size_t ds_rows;
  std::size_t ds_pairs;  ///< of keys
  std::size_t p;
  std::size_t ds;
  std::size_t dq;  ///< [depth][query]
  std::size_t dk;  ///< [key][padded depth]
  std::size_t dv;
  std::size_t bytes;
};

/// p and ds of a tile, rounded.
struct Rounded {
  BFloat16* p;
  BFloat16* ds;
  Bf16Pair* ds_pairs;
};

/// Of 32 queries: p holds scores, ds holds v dy^T. Not inline, so that the constants stay in
/// registers.
[[gnu::noinline]] void differentiate_queries(float factor, const float* log_sums,
                                             const float* shares, const float* p, const float* ds,
                                             const Rounded& to) {
  const __m512i first_half =
      _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                       37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i second_half = _mm512_add_epi16(first_half, _mm512_set1_epi16(16));
  const Lanes16 log_sum[2] = {load<16>(log_sums), load<16>(log_sums + 16)};
  const Lanes16 share[2] = {load<16>(shares), load<16>(shares + 16)};
  for (std::int64_t j = 0; j < kTileKeys; j += 2) {
    __m512i rounded[2];
    for (int i = 0; i < 2; ++i) {
      const std::int64_t row = (j + i) * kTileQueries;
      Lanes16 probability[2];
      Lanes16 gradient[2];
      for (int half = 0; half < 2; ++half) {
        const std::int64_t at = row + half * 16;
        probability[half] = exp2_for_bf16(load<16>(p + at) * factor - log_sum[half]);
        gradient[half] = probability[half] * (load<16>(ds + at) - share[half]);
      }
      rounded[i] = round_to_bf16(gradient[0], gradient[1]);
      _mm512_storeu_si512(to.p + row, round_to_bf16(probability[0], probability[1]));
      _mm512_storeu_si512(to.ds + row, rounded[i]);
    }
    Bf16Pair* const pairs = to.ds_pairs + j / 2 * kTileQueries;
    _mm512_storeu_si512(pairs, _mm512_permutex2var_epi16(rounded[0], first_half, rounded[1]));
    _mm512_storeu_si512(pairs + 16, _mm512_permutex2var_epi16(rounded[0], second_half, rounded[1]));
  }
}

/// A range of keys of one problem.
class KeyRange {
 public:
  KeyRange(const AttentionGeometry& n, const Cut& cut, const KernelArgs& args, std::byte* scratch,
           std::int64_t problem, std::int64_t range)
      : n_(n),
        args_(args),
        problem_(problem),
        first_(std::min(n.keys, range * cut.ranges.keys)),
        count_(std::min(cut.ranges.keys, n.keys - first_)),
        q_{at<BFloat16>(scratch, cut.q), kTileQueries, cut.depth},
        dy_{at<BFloat16>(scratch, cut.dy), kTileQueries, cut.value_depth},
        k_{at<BFloat16>(scratch, cut.k), cut.keys, cut.depth},
        v_{at<BFloat16>(scratch, cut.v), cut.keys, cut.value_depth},
        q_rows_(at<Bf16Pair>(scratch, cut.q_rows)),
        q_columns_(at<Bf16Pair>(scratch, cut.q_columns)),
        dy_rows_(at<Bf16Pair>(scratch, cut.dy_rows)),
        dy_columns_(at<Bf16Pair>(scratch, cut.dy_columns)),
        k_columns_(at<BFloat16>(scratch, cut.k_columns)),
        rounded_{at<BFloat16>(scratch, cut.p_rows), at<BFloat16>(scratch, cut.ds_rows),
                 at<Bf16Pair>(scratch, cut.ds_pairs)},
        p_(at<float>(scratch, cut.p)),
        ds_(at<float>(scratch, cut.ds)),
        dq_(at<float>(scratch, cut.dq)),
        dk_(at<float>(scratch, cut.dk)),
        dv_(at<float>(scratch, cut.dv)) {
    fill_panel(args.input<BFloat16>(n.operand(1)) + n.k.offset(problem) + first_ * n.k.row_step,
               n.k.row_step, count_, n.depth, k_);
    fill_panel(args.input<BFloat16>(n.operand(2)) + n.v.offset(problem) + first_ * n.v.row_step,
               n.v.row_step, count_, n.value_depth, v_);
    pack_columns(k_, k_columns_);
    std::fill_n(dk_, cut.keys * cut.depth, 0.0F);
    std::fill_n(dv_, cut.keys * cut.value_depth, 0.0F);
  }

  /// dq: this problem's, rows `step` apart.
  template <class T>
  void run(const std::vector<std::int64_t>& visible, T* dq, std::int64_t step) {
    for (std::int64_t block = 0; block * kTileQueries < n_.queries; ++block) {
      const TileRows rows(block, n_.queries);
      read_queries(rows);
      std::fill_n(dq_, k_.width * kTileQueries, 0.0F);
      const std::int64_t last = std::min(count_, visible[static_cast<std::size_t>(block)] - first_);
      for (std::int64_t first = 0; first < last; first += kTileKeys) {
        take_tile(rows, first, std::min(kTileKeys, last - first));
      }
      transpose_out(dq_, rows.count, n_.depth, n_.scale, dq + rows.first * step, step);
    }
  }

  void write(BFloat16* dk, BFloat16* dv) const {
    dk += n_.k.offset(problem_) + first_ * n_.k.row_step;
    dv += n_.v.offset(problem_) + first_ * n_.v.row_step;
    for (std::int64_t j = 0; j < count_; ++j) {
      float* const row = dk_ + j * k_.width;
      for (std::int64_t c = 0; c < n_.depth; ++c) row[c] *= n_.scale;
      convert_floats(row, n_.depth, dk + j * n_.k.row_step);
      convert_floats(dv_ + j * v_.width, n_.value_depth, dv + j * n_.v.row_step);
    }
  }

 private:
  template <class T>
  static T* at(std::byte* scratch, std::size_t offset) {
    return reinterpret_cast<T*>(scratch + offset);
  }

  void read_queries(const TileRows& rows) {
    fill_panel(args_.input<BFloat16>(0) + n_.q.offset(problem_) + rows.first * n_.q.row_step,
               n_.q.row_step, rows.count, n_.depth, q_);
    fill_panel(args_.input<BFloat16>(5) + n_.y.offset(problem_) + rows.first * n_.y.row_step,
               n_.y.row_step, rows.count, n_.value_depth, dy_);
    pack_row_pairs(q_, q_rows_);
    pack_column_pairs(q_, q_columns_);
    pack_row_pairs(dy_, dy_rows_);
    pack_column_pairs(dy_, dy_columns_);
    sums_ = QuerySums(n_, args_, problem_, rows);
  }

  void take_tile(const TileRows& rows, std::int64_t first, std::int64_t keys) {
    constexpr std::int64_t kKeyTiles = kTileKeys / kBf16Side;
    const std::int64_t queries = bf16_padded(rows.count);
    const std::int64_t query_tiles = queries / kBf16Side;
    const std::int64_t query_chunks = queries / kBf16Inner;
    bf16_product<false>(k_.from_row(first), {q_columns_, kTileQueries}, kKeyTiles, query_tiles,
                        terms_of(n_.depth), p_, kTileQueries);
    bf16_product<false>(v_.from_row(first), {dy_columns_, kTileQueries}, kKeyTiles, query_tiles,
                        terms_of(n_.value_depth), ds_, kTileQueries);
    const float* bias = nullptr;
    if (n_.has_bias) {
      bias = args_.input<float>(kAttentionGradBias) + n_.bias.offset(problem_) +
             rows.first * n_.bias.query_step + (first_ + first) * n_.bias.key_step;
    }
    const float factor = finish_scores(n_, bias, rows, keys, kTileKeys, p_);
    for (std::int64_t i = 0; i < queries; i += kBf16Inner) {
      differentiate_queries(factor, sums_.log_sum + i, sums_.share + i, p_ + i, ds_ + i,
                            {rounded_.p + i, rounded_.ds + i, rounded_.ds_pairs + i});
    }
    bf16_product<true>({rounded_.p, kTileQueries}, {dy_rows_, v_.width}, kKeyTiles,
                       bf16_tiles(n_.value_depth), {query_chunks}, dv_ + first * v_.width,
                       v_.width);
    bf16_product<true>({rounded_.ds, kTileQueries}, {q_rows_, k_.width}, kKeyTiles,
                       bf16_tiles(n_.depth), {query_chunks}, dk_ + first * k_.width, k_.width);
    bf16_product<true>(columns_from_row(k_columns_, k_, first), {rounded_.ds_pairs, kTileQueries},
                       bf16_tiles(n_.depth), query_tiles, {1}, dq_, kTileQueries);
  }

  const AttentionGeometry& n_;
  const KernelArgs& args_;
  std::int64_t problem_;
  std::int64_t first_;
  std::int64_t count_;
  Bf16Panel q_;
  Bf16Panel dy_;
  Bf16Panel k_;
  Bf16Panel v_;
  Bf16Pair* q_rows_;
  Bf16Pair* q_columns_;
  Bf16Pair* dy_rows_;
  Bf16Pair* dy_columns_;
  BFloat16* k_columns_;
  Rounded rounded_;
  float* p_;
  float* ds_;
  float* dq_;
  float* dk_;
  float* dv_;
  QuerySums sums_;
};

}  // namespace

Kernel make_bf16_attention_grad(KernelRequest& request) {
  if (!fits_bf16(request)) return {};
  const AttentionGeometry n(request, kAttentionGradBias);
  const Cut cut(n);
  const std::int64_t ranges = cut.ranges.count;
  const Pieces pieces(checked_multiply(n.problems, ranges), 2.5 * n.multiply_adds());
  WorkspaceLayout layout;
  const std::size_t scratch =
      layout.reserve_bytes(cut.bytes * static_cast<std::size_t>(pieces.count));
  const std::int64_t size = checked_multiply(n.queries, n.depth);
  const std::size_t parts =
      layout.reserve<float>(ranges > 1 ? checked_multiply(pieces.tasks, size) : 0);
  request.need_workspace(layout.bytes());
  const std::vector<std::int64_t> visible =
      visible_keys(request, n, kAttentionGradBias, kTileQueries);
  return [n, cut, ranges, pieces, scratch, parts, size, visible](const KernelArgs& args) {
    pieces.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      const AmxTiles tiles;
      std::byte* const memory =
          workspace_at<std::byte>(args, scratch + cut.bytes * static_cast<std::size_t>(piece));
      for (std::int64_t task = first; task < last; ++task) {
        const std::int64_t problem = task / ranges;
        KeyRange range(n, cut, args, memory, problem, task % ranges);
        if (ranges > 1) {
          range.run(visible, workspace_at<float>(args, parts) + task * size, n.depth);
        } else {
          range.run(visible, args.output<BFloat16>(0) + n.q.offset(problem), n.q.row_step);
        }
        range.write(args.output<BFloat16>(n.operand(1)), args.output<BFloat16>(n.operand(2)));
      }
    });
    if (ranges > 1) {
      add_parts(n, ranges, workspace_at<float>(args, parts), args.output<BFloat16>(0));
    }
  };
}

#else

Kernel make_bf16_attention_grad(KernelRequest& /*request*/) {
  return {};
}

#endif

}  // namespace graft
