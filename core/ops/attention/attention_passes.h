#pragma once

// What kernels of attention by tiles share, whatever multiplies.
#include <numeric>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/attention/attention_tile.h"

namespace graft {

/// Largest score and sum of probabilities of each query of a tile so far.
struct Running {
  Running() { std::fill_n(most, kTileQueries, -std::numeric_limits<float>::infinity()); }

  float most[kTileQueries];
  float sum[kTileQueries] = {};
};

/// Writes y, of what has been summed in y_columns: [depth][kTileQueries], and log_sum_exp.
template <class T>
void write_tile(const AttentionGeometry& n, std::int64_t problem, const TileRows& rows,
                const Running& running, float* y_columns, T* y, float* log_sums) {
  for (std::int64_t v = 0; n.keys > 0 && v < rows.vectors(); ++v) {
    for (std::int64_t c = 0; c < n.value_depth; ++c) {
      float* const at = y_columns + c * kTileQueries + v * 16;
      store(at, load<16>(at) / load<16>(running.sum + v * 16));
    }
  }
  transpose_out(y_columns, rows.count, n.value_depth, 1.0F,
                y + n.y.offset(problem) + rows.first * n.y.row_step, n.y.row_step);
  float* const to = log_sums + n.sums.offset(problem) + rows.first * n.sums.row_step;
  for (std::int64_t v = 0; v < rows.vectors(); ++v) {
    const Lanes16 sums =
        load<16>(running.most + v * 16) * kLn2 + log_of(load<16>(running.sum + v * 16));
    const std::int64_t count = std::min<std::int64_t>(16, rows.count - v * 16);
    for (std::int64_t i = 0; i < count; ++i) to[(v * 16 + i) * n.sums.row_step] = sums[i];
  }
}

/// log2 of the sum of the scores' powers of 2, and dy y, of each query of a tile. What is no query
/// has probabilities of 0.
struct QuerySums {
  QuerySums() { std::fill_n(log_sum, kTileQueries, std::numeric_limits<float>::infinity()); }
  QuerySums(const AttentionGeometry& n, const KernelArgs& args, std::int64_t problem,
            const TileRows& rows)
      : QuerySums() {
    const std::int64_t first = n.sums.offset(problem) + rows.first * n.sums.row_step;
    const float* const shares = args.input<float>(3) + first;
    const float* const log_sums = args.input<float>(4) + first;
    for (std::int64_t i = 0; i < rows.count; ++i) {
      share[i] = shares[i * n.sums.row_step];
      log_sum[i] = log_sums[i * n.sums.row_step] * kLog2E;
    }
  }

  float log_sum[kTileQueries];
  float share[kTileQueries] = {};
};

/// How the keys of each problem are cut for its gradient: where there are fewer problems than
/// threads, into ranges of whole tiles.
struct KeyRanges {
  KeyRanges(const AttentionGeometry& n, std::int64_t tile_keys) {
    const std::int64_t tiles = std::max<std::int64_t>(1, (n.keys + tile_keys - 1) / tile_keys);
    const std::int64_t threads = thread_count();
    if (n.problems < 8 * threads) count = threads / std::gcd(n.problems, threads);
    count = std::clamp<std::int64_t>(count, 1, tiles);
    keys = (tiles + count - 1) / count * tile_keys;
  }

  std::int64_t count = 1;  ///< of ranges, in each problem
  std::int64_t keys;       ///< of a range, but for the last
};

/// dq of a problem is the sum of those of its ranges: parts: [problem][range][query][depth].
template <class T>
void add_parts(const AttentionGeometry& n, std::int64_t ranges, const float* parts, T* dq) {
  const std::int64_t size = n.queries * n.depth;
  parallel_for(n.problems * n.queries, 1024, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t problem = row / n.queries;
      const std::int64_t query = row % n.queries;
      const float* const from = parts + problem * ranges * size + query * n.depth;
      T* const to = dq + n.q.offset(problem) + query * n.q.row_step;
      for (std::int64_t c = 0; c < n.depth; ++c) {
        float sum = 0.0F;
        for (std::int64_t range = 0; range < ranges; ++range) sum += from[range * size + c];
        to[c] = T(sum);
      }
    }
  });
}

}  // namespace graft
