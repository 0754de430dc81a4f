// Attention written plainly, once: for one problem in f64 or f32, and for 16 small f32 problems
// side by side, a lane each. Larger f32 problems go by tiles.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/attention/tiled_attention.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/lanes_math.h"
#include "core/ops/kernels/transpose.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

template <class V>
struct Rows {
  V* data;
  std::int64_t step;
  V* operator[](std::int64_t row) const { return data + row * step; }
};

template <class V>
V dot(const V* a, const V* b, std::int64_t n) {
  V sum{};
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <class V>
void add_scaled(const V& factor, const V* x, std::int64_t n, V* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/// What forward and backward read. `bias(query, key)`.
template <class V, class Bias>
struct Operands {
  const AttentionGeometry& n;
  Rows<const V> q;
  Rows<const V> k;
  Rows<const V> v;
  Bias bias;

  V score(std::int64_t i, std::int64_t j) const {
    return dot(q[i], k[j], n.depth) * n.scale + bias(i, j);
  }
};

/// `scores`: room for a row of them.
template <class V, class Bias>
void attend(const Operands<V, Bias>& x, V* scores, Rows<V> y, Rows<V> log_sums) {
  constexpr auto kLowest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < x.n.queries; ++i) {
    V most = V{} + kLowest;
    for (std::int64_t j = 0; j < x.n.keys; ++j) {
      scores[j] = x.score(i, j);
      most = larger(most, scores[j]);
    }
    V sum{};
    std::fill_n(y[i], x.n.value_depth, V{});
    for (std::int64_t j = 0; j < x.n.keys; ++j) {
      const V p = exp_negative(scores[j] - most);
      sum += p;
      add_scaled(p, x.v[j], x.n.value_depth, y[i]);
    }
    log_sums[i][0] = most + log_of(sum);
    if (x.n.keys == 0) continue;  // a sum over nothing is 0
    for (std::int64_t c = 0; c < x.n.value_depth; ++c) y[i][c] /= sum;
  }
}

/// With p = exp(score - log_sum): dv = p^T dy; ds = p (dy v^T - share); dq = scale ds k;
/// dk = scale ds^T q.
template <class V, class Bias>
void differentiate(const Operands<V, Bias>& x, Rows<const V> shares, Rows<const V> log_sums,
                   Rows<const V> dy, Rows<V> dq, Rows<V> dk, Rows<V> dv) {
  for (std::int64_t j = 0; j < x.n.keys; ++j) {
    std::fill_n(dk[j], x.n.depth, V{});
    std::fill_n(dv[j], x.n.value_depth, V{});
  }
  for (std::int64_t i = 0; i < x.n.queries; ++i) {
    std::fill_n(dq[i], x.n.depth, V{});
    for (std::int64_t j = 0; j < x.n.keys; ++j) {
      const V p = exp_negative(x.score(i, j) - log_sums[i][0]);
      const V ds = p * (dot(dy[i], x.v[j], x.n.value_depth) - shares[i][0]) * x.n.scale;
      add_scaled(p, dy[i], x.n.value_depth, dv[j]);
      add_scaled(ds, x.k[j], x.n.depth, dq[i]);
      add_scaled(ds, x.q[i], x.n.depth, dk[j]);
    }
  }
}

/// One operand of one problem, where it lies.
template <class T>
Rows<T> rows_of(T* data, const SequenceRows& rows, std::int64_t problem) {
  return {data + rows.offset(problem), rows.row_step};
}

template <class T>
auto operands_of(const AttentionGeometry& n, const KernelArgs& args, int bias_input,
                 std::int64_t problem) {
  const T* const bias = n.has_bias ? args.input<T>(bias_input) + n.bias.offset(problem) : nullptr;
  const auto bias_at = [bias, &n](std::int64_t i, std::int64_t j) {
    return bias == nullptr ? T{} : bias[i * n.bias.query_step + j * n.bias.key_step];
  };
  return Operands<T, decltype(bias_at)>{n, rows_of(args.input<T>(0), n.q, problem),
                                        rows_of(args.input<T>(n.operand(1)), n.k, problem),
                                        rows_of(args.input<T>(n.operand(2)), n.v, problem),
                                        bias_at};
}

Kernel make_plain(KernelRequest& request) {
  if (!is_kernel_dtype<double>(request.dtype())) return {};
  const AttentionGeometry n(request, kAttentionBias);
  const Pieces pieces(n.problems, n.multiply_adds());
  WorkspaceLayout layout;
  layout.reserve<double>(checked_multiply(pieces.count, n.keys));
  request.need_workspace(layout.bytes());
  return [n, pieces](const KernelArgs& args) {
    pieces.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      for (std::int64_t problem = first; problem < last; ++problem) {
        attend(operands_of<double>(n, args, kAttentionBias, problem),
               workspace_at<double>(args, 0) + piece * n.keys,
               rows_of(args.output<double>(0), n.y, problem),
               rows_of(args.output<double>(1), n.sums, problem));
      }
    });
  };
}

/// Gradients may overwrite operands, so those of a problem are made apart.
Kernel make_plain_grad(KernelRequest& request) {
  if (!is_kernel_dtype<double>(request.dtype())) return {};
  const AttentionGeometry n(request, kAttentionGradBias);
  const Pieces pieces(n.problems, n.multiply_adds());
  const std::int64_t dq_size = checked_multiply(n.queries, n.depth);
  const std::int64_t dk_size = checked_multiply(n.keys, n.depth);
  const std::int64_t size = dq_size + dk_size + checked_multiply(n.keys, n.value_depth);
  WorkspaceLayout layout;
  layout.reserve<double>(checked_multiply(pieces.count, size));
  request.need_workspace(layout.bytes());
  return [n, pieces, dq_size, dk_size, size](const KernelArgs& args) {
    pieces.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      const Rows<double> dq{workspace_at<double>(args, 0) + piece * size, n.depth};
      const Rows<double> dk{dq.data + dq_size, n.depth};
      const Rows<double> dv{dk.data + dk_size, n.value_depth};
      for (std::int64_t problem = first; problem < last; ++problem) {
        differentiate(operands_of<double>(n, args, kAttentionGradBias, problem),
                      rows_of(args.input<double>(3), n.sums, problem),
                      rows_of(args.input<double>(4), n.sums, problem),
                      rows_of(args.input<double>(5), n.y, problem), dq, dk, dv);
        const auto write = [&](const Rows<double>& rows, int operand, const SequenceRows& place,
                               std::int64_t count) {
          const Rows<double> to = rows_of(args.output<double>(n.operand(operand)), place, problem);
          for (std::int64_t i = 0; i < count; ++i) std::copy_n(rows[i], place.depth, to[i]);
        };
        write(dq, 0, n.q, n.queries);
        write(dk, 1, n.k, n.keys);
        write(dv, 2, n.v, n.keys);
      }
    });
  };
}

// Small problems: vectors along a sequence of four would be mostly empty, so 16 problems are
// brought side by side.

/// Up to 16 neighbouring problems, and scratch memory for their operands in lanes.
class Group {
 public:
  static constexpr std::int64_t kSize = 16;

  Group(std::int64_t index, const AttentionGeometry& n, float* scratch)
      : first_(index * kSize), count_(std::min(kSize, n.problems - first_)), next_(scratch) {
    for (int lane = 0; lane < kSize; ++lane) at_[lane] = n.q.index_of(problem(lane));
  }

  /// An operand brought into lanes; those of problems that are not there repeat the last one.
  Rows<const Lanes16> read(const float* data, const SequenceRows& rows, std::int64_t length) {
    const Rows<Lanes16> lanes = take(rows, length);
    const std::int64_t ahead =
        rows.offset(kSize) - rows.first;  // the next group's, in most layouts
    const float* from[kSize];
    for (int lane = 0; lane < kSize; ++lane) from[lane] = data + offset(rows, lane);
    for (std::int64_t r = 0; r < length; ++r) {
      for_each_column(from, rows.depth, [&](std::int64_t c, const Lanes16& v) { lanes[r][c] = v; });
      for (const float*& row : from) {
        __builtin_prefetch(row + ahead);
        row += rows.row_step;
      }
    }
    return {lanes.data, lanes.step};
  }
  /// Room for a result.
  Rows<Lanes16> take(const SequenceRows& rows, std::int64_t length) {
    auto* const at = reinterpret_cast<Lanes16*>(next_);
    next_ += length * rows.depth * kSize;
    return {at, rows.depth};
  }
  void write(const Rows<Lanes16>& lanes, const SequenceRows& rows, std::int64_t length,
             float* data) const {
    float* to[kSize];
    for (int lane = 0; lane < kSize; ++lane) {
      to[lane] = lane < count_ ? data + offset(rows, lane) : nullptr;
    }
    for (std::int64_t r = 0; r < length; ++r) {
      store_columns(
          rows.depth, [&](std::int64_t c) { return lanes[r][c]; }, to);
      for (std::int64_t lane = 0; lane < count_; ++lane) to[lane] += rows.row_step;
    }
  }
  std::int64_t offset(const SequenceRows& rows, int lane) const { return rows.offset(at_[lane]); }
  std::int64_t problem(int lane) const { return first_ + std::min<std::int64_t>(lane, count_ - 1); }

  auto operands(const AttentionGeometry& n, const KernelArgs& args, int bias_input) {
    const float* const bias = n.has_bias ? args.input<float>(bias_input) : nullptr;
    const auto bias_at = [this, bias, &n](std::int64_t i, std::int64_t j) {
      Lanes16 values{};
      for (int lane = 0; bias != nullptr && lane < kSize; ++lane) {
        values[lane] =
            bias[n.bias.offset(problem(lane)) + i * n.bias.query_step + j * n.bias.key_step];
      }
      return values;
    };
    const auto q = read(args.input<float>(0), n.q, n.queries);
    const auto k = read(args.input<float>(n.operand(1)), n.k, n.keys);
    const auto v = read(args.input<float>(n.operand(2)), n.v, n.keys);
    return Operands<Lanes16, decltype(bias_at)>{n, q, k, v, bias_at};
  }

 private:
  std::int64_t first_;
  std::int64_t count_;
  ProblemIndex at_[kSize];
  float* next_;
};

bool is_small(const KernelRequest& request, const AttentionGeometry& n) {
  constexpr std::int64_t kMostRows = 8;
  return request.dtype() == DType::f32 && n.problems >= Group::kSize / 2 &&
         std::max(n.queries, n.keys) <= kMostRows;
}

std::int64_t group_count(const AttentionGeometry& n) {
  return (n.problems + Group::kSize - 1) / Group::kSize;
}

/// Floats of scratch memory of a group.
std::int64_t group_floats(const AttentionGeometry& n, int copies) {
  const std::int64_t rows = n.queries + n.keys;
  return checked_multiply(rows * Group::kSize, copies * (n.depth + n.value_depth) + 1);
}

Kernel make_small(KernelRequest& request) {
  const AttentionGeometry n(request, kAttentionBias);
  if (!is_small(request, n)) return {};
  const Pieces pieces(group_count(n), n.multiply_adds());
  const std::int64_t floats = group_floats(n, 1);
  WorkspaceLayout layout;
  layout.reserve<float>(checked_multiply(pieces.count, floats));
  request.need_workspace(layout.bytes());
  return [n, pieces, floats](const KernelArgs& args) {
    pieces.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      for (std::int64_t index = first; index < last; ++index) {
        Group group(index, n, workspace_at<float>(args, 0) + piece * floats);
        const auto operands = group.operands(n, args, kAttentionBias);
        const Rows<Lanes16> y = group.take(n.y, n.queries);
        const Rows<Lanes16> sums = group.take(n.sums, n.queries);
        attend(operands, group.take(n.sums, n.keys).data, y, sums);
        group.write(y, n.y, n.queries, args.output<float>(0));
        group.write(sums, n.sums, n.queries, args.output<float>(1));
      }
    });
  };
}

Kernel make_small_grad(KernelRequest& request) {
  const AttentionGeometry n(request, kAttentionGradBias);
  if (!is_small(request, n)) return {};
  const Pieces pieces(group_count(n), n.multiply_adds());
  const std::int64_t floats = group_floats(n, 2);
  WorkspaceLayout layout;
  layout.reserve<float>(checked_multiply(pieces.count, floats));
  request.need_workspace(layout.bytes());
  return [n, pieces, floats](const KernelArgs& args) {
    pieces.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      for (std::int64_t index = first; index < last; ++index) {
        Group group(index, n, workspace_at<float>(args, 0) + piece * floats);
        const auto operands = group.operands(n, args, kAttentionGradBias);
        const auto shares = group.read(args.input<float>(3), n.sums, n.queries);
        const auto sums = group.read(args.input<float>(4), n.sums, n.queries);
        const auto dy = group.read(args.input<float>(5), n.y, n.queries);
        const Rows<Lanes16> dq = group.take(n.q, n.queries);
        const Rows<Lanes16> dk = group.take(n.k, n.keys);
        const Rows<Lanes16> dv = group.take(n.v, n.keys);
        differentiate(operands, shares, sums, dy, dq, dk, dv);
        group.write(dq, n.q, n.queries, args.output<float>(0));
        group.write(dk, n.k, n.keys, args.output<float>(n.operand(1)));
        group.write(dv, n.v, n.keys, args.output<float>(n.operand(2)));
      }
    });
  };
}

}  // namespace

void register_tiled_attention_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view name, KernelFactory make) {
    registry.add({.op = op, .domain = kInternalDomain, .name = name, .make = make});
  };
  add("TiledAttention", "bf16_tiles", make_bf16_attention);
  add("TiledAttention", "many small", make_small);
  add("TiledAttention", "tiles", make_attention_by_tiles);
  add("TiledAttention", "plain", make_plain);
  add("TiledAttentionGrad", "bf16_tiles", make_bf16_attention_grad);
  add("TiledAttentionGrad", "many small", make_small_grad);
  add("TiledAttentionGrad", "tiles", make_attention_grad_by_tiles);
  add("TiledAttentionGrad", "plain", make_plain_grad);
}

}  // namespace graft
