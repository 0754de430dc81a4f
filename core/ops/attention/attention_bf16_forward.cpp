// As tiled_attention_forward.cpp, of bf16: scores = k q^T and y^T += v^T p by tiles
// (bf16_product.h).
#include "core/ops/attention/attention_bf16.h"
#include "core/ops/attention/tiled_attention.h"
#include "core/ops/kernels/workspace.h"

namespace graft {

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace {

/// Keys of a tile, whole chunks: their scores and the pairs made of these fit in a first-level
/// cache of 48 KiB.
constexpr std::int64_t kTileKeys = 96;

/// Scratch memory of a thread. Offsets in bytes.
struct Scratch {
  explicit Scratch(const AttentionGeometry& n)
      : depth(bf16_padded(n.depth)),
        value_depth(bf16_padded(n.value_depth)),
        keys(bf16_padded(n.keys)),
        tile_keys(std::min(kTileKeys, keys)) {
    WorkspaceLayout layout;
    q = layout.reserve<BFloat16>(depth * kTileQueries);
    q_pairs = layout.reserve<BFloat16>(depth * kTileQueries);
    k = layout.reserve<BFloat16>(checked_multiply(keys, depth));
    v = layout.reserve<BFloat16>(checked_multiply(keys, value_depth));
    v_columns = layout.reserve<BFloat16>(checked_multiply(keys, value_depth));
    scores = layout.reserve<float>(tile_keys * kTileQueries);
    p_pairs = layout.reserve<BFloat16>(tile_keys * kTileQueries);
    y = layout.reserve<float>(value_depth * kTileQueries);
    bytes = layout.bytes();
  }

  std::int64_t depth;
  std::int64_t value_depth;
  std::int64_t keys;
  std::int64_t tile_keys;
  std::size_t q;
  std::size_t q_pairs;
  std::size_t k;
  std::size_t v;
  std::size_t v_columns;
  std::size_t scores;
  std::size_t p_pairs;
  std::size_t y;
  std::size_t bytes;
};

/// The largest scores of `vectors` times 16 queries, which stand side by side in most.
template <int vectors>
void find_most(std::int64_t keys, const float* scores, float* most) {
  Lanes16 even[vectors];
  Lanes16 odd[vectors];
  for (int v = 0; v < vectors; ++v) even[v] = odd[v] = load<16>(scores + v * 16);
  for (std::int64_t j = 0; j < keys; j += 2) {
    const float* const at = scores + j * kTileQueries;
    for (int v = 0; v < vectors; ++v) {
      even[v] = larger(even[v], load<16>(at + v * 16));
      odd[v] = larger(odd[v], load<16>(at + kTileQueries + v * 16));
    }
  }
  for (int v = 0; v < vectors; ++v) store(most + v * 16, larger(even[v], odd[v]));
}

/// Raises the largest scores so far of `vectors` times 16 queries. Returns whether any rose, and by
/// which factors, `keep`, that scales down what has been summed.
bool raise_most(std::int64_t keys, float factor, const float* scores, std::int64_t vectors,
                Running& running, float* keep) {
  float found[kTileQueries];
  with_count<kTileQueries / 16>(vectors,
                                [&]<int count>() { find_most<count>(keys, scores, found); });
  bool rises = false;
  for (std::int64_t i = 0; i < vectors * 16; i += 16) {
    const Lanes16 before = load<16>(running.most + i);
    const Lanes16 most = larger(before, load<16>(found + i) * factor);
    // Where all is hidden so far, exp2(-inf - 0) is the 0 that exp2(-inf + inf) is not.
    const Lanes16 least = all_lanes(std::numeric_limits<float>::lowest());
    store(keep + i, exp2_for_bf16(before - larger(least, most)));
    store(running.most + i, most);
    rises = rises || _mm512_cmp_ps_mask(before, most, _CMP_EQ_OQ) != 0xffff;
  }
  return rises;
}

/// Turns scores of 16 queries into probabilities, rounded, in pairs of keys; returns their sums.
/// Not inline, so that the constants stay in registers.
[[gnu::noinline]] Lanes16 take_queries(std::int64_t keys, float factor, const float* scores,
                                       const Lanes16& most, Bf16Pair* pairs) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const Lanes16 shift = larger(all_lanes(std::numeric_limits<float>::lowest()), most);
  Lanes16 even{};
  Lanes16 odd{};
  for (std::int64_t j = 0; j < keys; j += 2) {
    const float* const at = scores + j * kTileQueries;
    const Lanes16 first = exp2_for_bf16(load<16>(at) * factor - shift);
    const Lanes16 second = exp2_for_bf16(load<16>(at + kTileQueries) * factor - shift);
    even += first;
    odd += second;
    _mm512_storeu_si512(pairs + j / 2 * kTileQueries,
                        _mm512_permutexvar_epi16(order, round_to_bf16(first, second)));
  }
  return even + odd;
}

/// What the tiles of one problem read and the memory that they work in.
class Problem {
 public:
  Problem(const AttentionGeometry& n, const Scratch& layout, const KernelArgs& args,
          std::byte* scratch, std::int64_t index)
      : n_(n),
        args_(args),
        index_(index),
        q_{at<BFloat16>(scratch, layout.q), kTileQueries, layout.depth},
        k_{at<BFloat16>(scratch, layout.k), layout.keys, layout.depth},
        v_{at<BFloat16>(scratch, layout.v), layout.keys, layout.value_depth},
        q_pairs_(at<Bf16Pair>(scratch, layout.q_pairs)),
        v_columns_(at<BFloat16>(scratch, layout.v_columns)),
        scores_(at<float>(scratch, layout.scores)),
        p_pairs_(at<Bf16Pair>(scratch, layout.p_pairs)),
        y_(at<float>(scratch, layout.y)) {
    fill_panel(args.input<BFloat16>(n.operand(1)) + n.k.offset(index), n.k.row_step, n.keys,
               n.depth, k_);
    fill_panel(args.input<BFloat16>(n.operand(2)) + n.v.offset(index), n.v.row_step, n.keys,
               n.value_depth, v_);
    pack_columns(v_, v_columns_);
  }

  void attend(std::int64_t block, std::int64_t visible) {
    const TileRows rows(block, n_.queries);
    Running running;
    fill_panel(args_.input<BFloat16>(0) + n_.q.offset(index_) + rows.first * n_.q.row_step,
               n_.q.row_step, rows.count, n_.depth, q_);
    pack_column_pairs(q_, q_pairs_);
    std::fill_n(y_, n_.value_depth * kTileQueries, 0.0F);
    for (std::int64_t first = 0; first < visible; first += kTileKeys) {
      take_keys(rows, first, std::min(kTileKeys, visible - first), running);
    }
    write_tile(n_, index_, rows, running, y_, args_.output<BFloat16>(0), args_.output<float>(1));
  }

 private:
  template <class T>
  static T* at(std::byte* scratch, std::size_t offset) {
    return reinterpret_cast<T*>(scratch + offset);
  }

  void take_keys(const TileRows& rows, std::int64_t first, std::int64_t keys, Running& running) {
    const std::int64_t score_rows = bf16_padded(keys);
    bf16_product<false>(k_.from_row(first), {q_pairs_, kTileQueries}, score_rows / kBf16Side,
                        rows.vectors(), terms_of(n_.depth), scores_, kTileQueries);
    const float* bias = nullptr;
    if (n_.has_bias) {
      bias = args_.input<float>(kAttentionBias) + n_.bias.offset(index_) +
             rows.first * n_.bias.query_step + first * n_.bias.key_step;
    }
    const float factor = finish_scores(n_, bias, rows, keys, score_rows, scores_);
    float keep[kTileQueries];
    const bool rises = raise_most(score_rows, factor, scores_, rows.vectors(), running, keep);
    for (std::int64_t i = 0; i < rows.lanes(); i += 16) {
      const Lanes16 more =
          take_queries(score_rows, factor, scores_ + i, load<16>(running.most + i), p_pairs_ + i);
      float* const sum = running.sum + i;
      store(sum, load<16>(sum) * load<16>(keep + i) + more);
      for (std::int64_t c = 0; rises && c < n_.value_depth; ++c) {
        float* const y = y_ + c * kTileQueries + i;
        store(y, load<16>(y) * load<16>(keep + i));
      }
    }
    bf16_product<true>(columns_from_row(v_columns_, v_, first), {p_pairs_, kTileQueries},
                       bf16_tiles(n_.value_depth), rows.vectors(), {score_rows / kBf16Inner}, y_,
                       kTileQueries);
  }

  const AttentionGeometry& n_;
  const KernelArgs& args_;
  std::int64_t index_;
  Bf16Panel q_;
  Bf16Panel k_;
  Bf16Panel v_;
  Bf16Pair* q_pairs_;
  BFloat16* v_columns_;
  float* scores_;
  Bf16Pair* p_pairs_;
  float* y_;
};

}  // namespace

Kernel make_bf16_attention(KernelRequest& request) {
  if (!fits_bf16(request)) return {};
  const AttentionGeometry n(request, kAttentionBias);
  const std::int64_t blocks = (n.queries + kTileQueries - 1) / kTileQueries;
  const Pieces pieces(checked_multiply(n.problems, blocks), n.multiply_adds());
  const Scratch scratch(n);
  request.need_workspace(scratch.bytes * static_cast<std::size_t>(pieces.count));
  const std::vector<std::int64_t> visible = visible_keys(request, n, kAttentionBias, kTileQueries);
  return [n, blocks, pieces, scratch, visible](const KernelArgs& args) {
    pieces.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      const AmxTiles tiles;
      std::byte* const memory =
          workspace_at<std::byte>(args, scratch.bytes * static_cast<std::size_t>(piece));
      for (std::int64_t task = first; task < last;) {
        const std::int64_t index = task / blocks;
        Problem problem(n, scratch, args, memory, index);
        for (; task < last && task / blocks == index; ++task) {
          problem.attend(task % blocks, visible[static_cast<std::size_t>(task % blocks)]);
        }
      }
    });
  };
}

#else

Kernel make_bf16_attention(KernelRequest& /*request*/) {
  return {};
}

#endif

}  // namespace graft
