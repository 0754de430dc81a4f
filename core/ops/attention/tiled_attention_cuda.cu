// Attention, a warp a row of scores: lanes make the scores side by side and keep them in a row of
// the workspace, then the columns of the sum. So many warps run at once as there are rows of
// workspace; scores are never in memory as a whole.
#include <algorithm>
#include <cstddef>

#include "core/ops/attention/tiled_attention.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/rows_cuda.h"

namespace graft {
namespace {

/// A bias with its offsets by problem.
struct DeviceBias {
  static constexpr int kMostAxes = 6;
  int axes = 0;
  std::int64_t dims[kMostAxes] = {};
  std::int64_t steps[kMostAxes] = {};
  std::int64_t query_step = 0;
  std::int64_t key_step = 0;

  explicit DeviceBias(const AttentionBias& bias)
      : axes(static_cast<int>(bias.dims.size())),
        query_step(bias.query_step),
        key_step(bias.key_step) {
    for (std::size_t i = 0; i < bias.dims.size(); ++i) {
      dims[i] = bias.dims[i];
      steps[i] = bias.steps[i];
    }
  }
  __device__ std::int64_t offset(std::int64_t problem) const {
    std::int64_t at = 0;
    for (int axis = axes; axis-- > 0;) {
      at += problem % dims[axis] * steps[axis];
      problem /= dims[axis];
    }
    return at;
  }
};

__device__ std::int64_t row_at(const SequenceRows& rows, std::int64_t problem, std::int64_t row) {
  return rows.offset(problem) + row * rows.row_step;
}

/// The rows of one problem.
template <class T>
struct ProblemRows {
  const T* data;
  const SequenceRows& rows;
  std::int64_t problem;
  std::int64_t count;
  std::int64_t depth;

  /// Calls store(c, sum over the rows i of weights[i] times their element c) for each column.
  template <class Store>
  __device__ void add_up(const WarpTeam& team, const T* weights, Store store) const {
    for (std::int64_t c = team.rank; c < depth; c += WarpTeam::size) {
      T total{0};
      for (std::int64_t i = 0; i < count; ++i) {
        total += weights[i] * data[row_at(rows, problem, i) + c];
      }
      store(c, total);
    }
  }
};

/// The geometry and the operands that forward and backward read.
template <class T>
struct Operands {
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t depth;
  std::int64_t value_depth;
  T scale;
  SequenceRows q_rows;
  SequenceRows k_rows;
  SequenceRows v_rows;
  SequenceRows y_rows;
  SequenceRows sum_rows;
  DeviceBias bias_steps;
  const T* q;
  const T* k;
  const T* v;
  const T* bias;  ///< may be null

  Operands(const AttentionGeometry& n, const KernelArgs& args, int bias_input)
      : queries(n.queries),
        keys(n.keys),
        depth(n.depth),
        value_depth(n.value_depth),
        scale(static_cast<T>(n.scale)),
        q_rows(n.q),
        k_rows(n.k),
        v_rows(n.v),
        y_rows(n.y),
        sum_rows(n.sums),
        bias_steps(n.bias),
        q(args.input<T>(0)),
        k(args.input<T>(n.operand(1))),
        v(args.input<T>(n.operand(2))),
        bias(n.has_bias ? args.input<T>(bias_input) : nullptr) {}

  __device__ static T dot(const T* a, const T* b, std::int64_t count) {
    T sum{0};
    for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }
  __device__ T score(std::int64_t problem, std::int64_t i, std::int64_t j) const {
    const T own =
        scale * dot(q + row_at(q_rows, problem, i), k + row_at(k_rows, problem, j), depth);
    if (bias == nullptr) return own;
    return own +
           bias[bias_steps.offset(problem) + i * bias_steps.query_step + j * bias_steps.key_step];
  }
};

/// A row is a query of a problem.
template <class T>
struct Attend {
  Operands<T> x;
  T* y;
  T* log_sums;
  T* scores;  ///< a row of keys a warp

  __device__ void operator()(std::int64_t row, const WarpTeam& team) const {
    const std::int64_t problem = row / x.queries;
    const std::int64_t i = row % x.queries;
    T* const own = scores + WarpTeam::first_row() * x.keys;
    T most = device_math::lowest<T>();
    for (std::int64_t j = team.rank; j < x.keys; j += WarpTeam::size) {
      own[j] = x.score(problem, i, j);
      most = Larger{}(most, own[j]);
    }
    most = team.join(most, Larger{});
    T sum{0};
    for (std::int64_t j = team.rank; j < x.keys; j += WarpTeam::size) {
      own[j] = device_math::exp(own[j] - most);
      sum += own[j];
    }
    sum = team.join(sum, Add{});
    team.sync();
    const ProblemRows<T> values{x.v, x.v_rows, problem, x.keys, x.value_depth};
    values.add_up(team, own, [&](std::int64_t c, T total) {
      y[row_at(x.y_rows, problem, i) + c] = x.keys == 0 ? T{0} : total / sum;
    });
    if (team.rank == 0) {
      log_sums[row_at(x.sum_rows, problem, i)] = most + device_math::log(sum);
    }
    team.sync();  // the next row of this warp takes the same scores
  }
};

/// With p = exp(score - log_sum): dv = p^T dy; ds = p (dy v^T - share); dq = scale ds k;
/// dk = scale ds^T q.
template <class T>
struct Gradients {
  Operands<T> x;
  const T* shares;
  const T* log_sums;
  const T* dy;
  T* dq;  ///< [problem, query, depth]: dq's own place may be that of q, which dk needs
  T* dk;
  T* dv;
  T* rows;  ///< of numbers, two a warp

  __device__ T probability(std::int64_t problem, std::int64_t i, std::int64_t j) const {
    return device_math::exp(x.score(problem, i, j) - log_sums[row_at(x.sum_rows, problem, i)]);
  }
  /// Of the score, times the scale.
  __device__ T score_gradient(std::int64_t problem, std::int64_t i, std::int64_t j, T p) const {
    const T along = Operands<T>::dot(dy + row_at(x.y_rows, problem, i),
                                     x.v + row_at(x.v_rows, problem, j), x.value_depth);
    return p * (along - shares[row_at(x.sum_rows, problem, i)]) * x.scale;
  }
};

/// A row is a query.
template <class T>
struct QueryGradient {
  Gradients<T> g;
  __device__ void operator()(std::int64_t row, const WarpTeam& team) const {
    const Operands<T>& x = g.x;
    const std::int64_t problem = row / x.queries;
    const std::int64_t i = row % x.queries;
    T* const ds = g.rows + WarpTeam::first_row() * x.keys;
    for (std::int64_t j = team.rank; j < x.keys; j += WarpTeam::size) {
      ds[j] = g.score_gradient(problem, i, j, g.probability(problem, i, j));
    }
    team.sync();
    const ProblemRows<T> keys{x.k, x.k_rows, problem, x.keys, x.depth};
    keys.add_up(team, ds, [&](std::int64_t c, T total) { g.dq[row * x.depth + c] = total; });
    team.sync();
  }
};

/// A row is a key. It reads no other row of k and v, so that gradients may take their place.
template <class T>
struct KeyGradient {
  Gradients<T> g;
  __device__ void operator()(std::int64_t row, const WarpTeam& team) const {
    const Operands<T>& x = g.x;
    const std::int64_t problem = row / x.keys;
    const std::int64_t j = row % x.keys;
    T* const p = g.rows + WarpTeam::first_row() * 2 * x.queries;
    T* const ds = p + x.queries;
    for (std::int64_t i = team.rank; i < x.queries; i += WarpTeam::size) {
      p[i] = g.probability(problem, i, j);
      ds[i] = g.score_gradient(problem, i, j, p[i]);
    }
    team.sync();
    const ProblemRows<T> queries{x.q, x.q_rows, problem, x.queries, x.depth};
    queries.add_up(
        team, ds, [&](std::int64_t c, T total) { g.dk[row_at(x.k_rows, problem, j) + c] = total; });
    const ProblemRows<T> gradients{g.dy, x.y_rows, problem, x.queries, x.value_depth};
    gradients.add_up(
        team, p, [&](std::int64_t c, T total) { g.dv[row_at(x.v_rows, problem, j) + c] = total; });
    team.sync();
  }
};

template <class T>
struct PlaceQueryGradient {
  SequenceRows rows;
  const T* from;
  T* dq;
  std::int64_t queries;
  std::int64_t depth;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / depth;
    dq[row_at(rows, row / queries, row % queries) + i % depth] = from[i];
  }
};

constexpr std::int64_t kMostBlocks = 512;

/// Warps that run at once.
std::int64_t warps_for(std::int64_t rows) {
  const std::int64_t blocks = (rows + WarpTeam::kRowsPerBlock - 1) / WarpTeam::kRowsPerBlock;
  return std::min(blocks, kMostBlocks) * WarpTeam::kRowsPerBlock;
}

template <class Body>
void start_warps(const Body& body, std::int64_t rows, cudaStream_t stream) {
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>(warps_for(rows) / WarpTeam::kRowsPerBlock);
  launch(run_rows<WarpTeam, Body>, dim3(blocks), dim3(kBlockThreads), 0, stream, body, rows);
}

bool fits(const AttentionGeometry& n) {
  return n.bias.dims.size() <= DeviceBias::kMostAxes;
}

Kernel make_attention(KernelRequest& request) {
  const AttentionGeometry n(request, kAttentionBias);
  if (!fits(n)) return {};
  const std::int64_t rows = checked_multiply(n.problems, n.queries);
  request.need_workspace(bytes_of(request.dtype(), checked_multiply(warps_for(rows), n.keys)));
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const Attend<T> attend{Operands<T>(n, args, kAttentionBias), args.output<T>(0),
                           args.output<T>(1), static_cast<T*>(args.workspace)};
    start_warps(attend, rows, stream);
  });
}

/// The workspace holds dq, then rows of the warps.
Kernel make_attention_grad(KernelRequest& request) {
  const AttentionGeometry n(request, kAttentionGradBias);
  if (!fits(n)) return {};
  const std::int64_t query_rows = checked_multiply(n.problems, n.queries);
  const std::int64_t key_rows = checked_multiply(n.problems, n.keys);
  const std::int64_t dq_size = checked_multiply(query_rows, n.depth);
  const std::int64_t row_size = std::max(checked_multiply(warps_for(query_rows), n.keys),
                                         checked_multiply(warps_for(key_rows), 2 * n.queries));
  request.need_workspace(bytes_of(request.dtype(), dq_size + row_size));
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    auto* const dq = static_cast<T*>(args.workspace);
    const Gradients<T> g{Operands<T>(n, args, kAttentionGradBias),
                         args.input<T>(3),
                         args.input<T>(4),
                         args.input<T>(5),
                         dq,
                         args.output<T>(n.operand(1)),
                         args.output<T>(n.operand(2)),
                         dq + dq_size};
    start_warps(QueryGradient<T>{g}, query_rows, stream);
    start_warps(KeyGradient<T>{g}, key_rows, stream);
    start_items(PlaceQueryGradient<T>{n.q, dq, args.output<T>(0), n.queries, n.depth}, dq_size,
                stream);
  });
}

}  // namespace

void register_tiled_attention_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "rows",
                   {{"TiledAttention", make_attention, kInternalDomain},
                    {"TiledAttentionGrad", make_attention_grad, kInternalDomain}});
}

}  // namespace graft
