// For each tile of 64 queries, one tile of keys after the other: scores = k q^T, probabilities
// relative to the largest score so far, y^T += v^T p. When a larger score comes, what has been
// summed is scaled down (Dao et al. 2022, algorithm 1; Milakov and Gimelshein 2018).
#include "core/ops/attention/attention_passes.h"
#include "core/ops/attention/tiled_attention.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

/// Keys of a tile: a multiple of the rows that the product keeps in registers; the scores fill half
/// of a first-level cache of 48 KiB.
constexpr std::int64_t kTileKeys = 96;

/// Scratch memory of a thread.
struct Scratch {
  explicit Scratch(const AttentionGeometry& n, WorkspaceLayout& layout)
      : q(layout.reserve<float>(n.depth * kTileQueries)),
        y(layout.reserve<float>(n.value_depth * kTileQueries)),
        scores(layout.reserve<float>(std::min(kTileKeys, n.keys) * kTileQueries)),
        k(layout.reserve<float>(copied_floats(n.k, n.keys))),
        v(layout.reserve<float>(copied_floats(n.v, n.keys))),
        bytes(layout.bytes()) {}

  std::size_t q;
  std::size_t y;
  std::size_t scores;
  std::size_t k;
  std::size_t v;
  std::size_t bytes;
};

/// Turns scores of so many registers of queries into probabilities; y: [depth][kTileQueries],
/// scaled down if needed. Not inline, so that the constants of exp2 stay in registers.
template <int registers>
[[gnu::noinline]] void take_queries(std::int64_t keys, float* scores, float* most_so_far,
                                    float* sum_so_far, std::int64_t depth, float* y) {
  constexpr int kLanes = kRegisterLanes;
  using Register = Lanes<kLanes>;
  Register most[registers];
  for (int v = 0; v < registers; ++v) most[v] = load<kLanes>(most_so_far + v * kLanes);
  for (std::int64_t j = 0; j < keys; ++j) {
    for (int v = 0; v < registers; ++v) {
      most[v] = larger(most[v], load<kLanes>(scores + j * kTileQueries + v * kLanes));
    }
  }
  Register keep[registers];
  Register sum[registers];
  for (int v = 0; v < registers; ++v) {
    const Register before = load<kLanes>(most_so_far + v * kLanes);
    store(most_so_far + v * kLanes, most[v]);
    // Where all is hidden so far, exp2(-inf - 0) is the 0 that exp2(-inf + inf) is not.
    most[v] = most[v] == -std::numeric_limits<float>::infinity() ? Register{} : most[v];
    keep[v] = exp2(before - most[v]);
    sum[v] = Register{};
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    for (int v = 0; v < registers; ++v) {
      float* const at = scores + j * kTileQueries + v * kLanes;
      const Register p = exp2(load<kLanes>(at) - most[v]);
      store(at, p);
      sum[v] += p;
    }
  }
  for (int v = 0; v < registers; ++v) {
    float* const at = sum_so_far + v * kLanes;
    store(at, load<kLanes>(at) * keep[v] + sum[v]);
  }
  for (std::int64_t c = 0; c < depth; ++c) {
    for (int v = 0; v < registers; ++v) {
      float* const at = y + c * kTileQueries + v * kLanes;
      store(at, load<kLanes>(at) * keep[v]);
    }
  }
}

/// The keys and values of one problem.
struct Keys {
  Keys(const AttentionGeometry& n, const Scratch& layout, const KernelArgs& args,
       std::byte* scratch, std::int64_t problem)
      : k(close_rows(args.input<float>(n.operand(1)) + n.k.offset(problem), n.k, n.keys,
                     reinterpret_cast<float*>(scratch + layout.k))),
        v(close_rows(args.input<float>(n.operand(2)) + n.v.offset(problem), n.v, n.keys,
                     reinterpret_cast<float*>(scratch + layout.v))) {}

  KeyRows k;
  KeyRows v;
};

/// One tile of queries of one problem.
class QueryTile {
 public:
  QueryTile(const AttentionGeometry& n, const Scratch& layout, const KernelArgs& args,
            std::byte* scratch, const Keys& keys, std::int64_t problem, std::int64_t block)
      : n_(n),
        problem_(problem),
        rows_(block, n.queries),
        q_(reinterpret_cast<float*>(scratch + layout.q)),
        y_(reinterpret_cast<float*>(scratch + layout.y)),
        scores_(reinterpret_cast<float*>(scratch + layout.scores)),
        k_(keys.k),
        v_(keys.v) {
    if (n.has_bias) {
      bias_ = args.input<float>(kAttentionBias) + n.bias.offset(problem) +
              rows_.first * n.bias.query_step;
    }
    transpose_in(args.input<float>(0) + n.q.offset(problem) + rows_.first * n.q.row_step,
                 n.q.row_step, rows_.count, n.depth, n.scale * kLog2E, q_);
    std::fill_n(y_, n.value_depth * kTileQueries, 0.0F);
  }

  void run(std::int64_t visible) {
    for (std::int64_t first = 0; first < visible; first += kTileKeys) {
      const std::int64_t keys = std::min(kTileKeys, visible - first);
      make_scores(first, keys);
      if (bias_ != nullptr) {
        add_bias(n_.bias, bias_ + first * n_.bias.key_step, rows_, keys, scores_);
      }
      for_each_register_group(rows_.lanes(), [&]<int registers>(std::int64_t i) {
        take_queries<registers>(keys, scores_ + i, running_.most + i, running_.sum + i,
                                n_.value_depth, y_ + i);
      });
      tile_product<true>(TileOperand<std::int64_t>{v_[first], 1, v_.step}, scores_, kTileQueries,
                         n_.value_depth, keys, rows_.lanes(), y_, kTileQueries);
    }
  }

  void write(float* y, float* log_sums) {
    write_tile(n_, problem_, rows_, running_, y_, y, log_sums);
  }

 private:
  /// The first tile of queries to see these keys asks for the next ones, a few at a time.
  void make_scores(std::int64_t first, std::int64_t keys) {
    constexpr std::int64_t kChunk = 24;
    for (std::int64_t j = 0; j < keys; j += kChunk) {
      const std::int64_t count = std::min(kChunk, keys - j);
      tile_product<false>(TileOperand<std::int64_t>{k_[first + j], k_.step, 1}, q_, kTileQueries,
                          count, n_.depth, rows_.lanes(), scores_ + j * kTileQueries, kTileQueries);
      if (rows_.first > 0) continue;
      prefetch_rows(k_[first + j + keys], k_.step, count, n_.depth);
      prefetch_rows(v_[first + j + keys], v_.step, count, n_.value_depth);
    }
  }

  const AttentionGeometry& n_;
  std::int64_t problem_;
  TileRows rows_;
  float* q_;
  float* y_;
  float* scores_;
  KeyRows k_;
  KeyRows v_;
  const float* bias_ = nullptr;
  Running running_;
};

}  // namespace

Kernel make_attention_by_tiles(KernelRequest& request) {
  if (request.dtype() != DType::f32) return {};
  const AttentionGeometry n(request, kAttentionBias);
  const std::int64_t blocks = (n.queries + kTileQueries - 1) / kTileQueries;
  const Pieces pieces(checked_multiply(n.problems, blocks), n.multiply_adds());
  WorkspaceLayout layout;
  const Scratch scratch(n, layout);
  request.need_workspace(scratch.bytes * static_cast<std::size_t>(pieces.count));
  const std::vector<std::int64_t> visible = visible_keys(request, n, kAttentionBias, kTileQueries);
  return [n, blocks, pieces, scratch, visible](const KernelArgs& args) {
    pieces.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      std::byte* const memory =
          workspace_at<std::byte>(args, scratch.bytes * static_cast<std::size_t>(piece));
      for (std::int64_t task = first; task < last;) {
        const std::int64_t problem = task / blocks;
        const Keys keys(n, scratch, args, memory, problem);
        for (; task < last && task / blocks == problem; ++task) {
          QueryTile tile(n, scratch, args, memory, keys, problem, task % blocks);
          tile.run(visible[static_cast<std::size_t>(task % blocks)]);
          tile.write(args.output<float>(0), args.output<float>(1));
        }
      }
    });
  };
}

}  // namespace graft
