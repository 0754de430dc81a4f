// For each tile of 64 queries and some keys the probabilities are made again from log_sum_exp, then
//   dv += p dy;  ds = p (v dy^T - share);  dk += ds q;  dq^T += k^T ds   (p, ds: [key][query]).
// A task is a range of keys of one problem, whose dk and dv it alone sums; where there are fewer
// problems than threads, ranges of one problem have a dq each, which are added at the end.
// Gradients may overwrite operands: dq of a tile is written when its queries have been read for the
// last time, dk and dv of a range when its keys have.
// Source: Dao et al. 2022, algorithm 4.
#include "core/ops/attention/attention_passes.h"
#include "core/ops/attention/tiled_attention.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

/// Keys of a tile: 48 is a multiple of the rows that the products keep in registers, and two tiles
/// fill half of a first-level cache of 48 KiB.
constexpr std::int64_t kTileKeys = 48;

/// How problems are cut, and the scratch memory of a thread.
struct Cut {
  explicit Cut(const AttentionGeometry& n) : ranges(n, kTileKeys) {
    const std::int64_t range_keys = std::min(ranges.keys, n.keys);
    const std::int64_t depth = padded_depth(n.depth);
    const std::int64_t value_depth = padded_depth(n.value_depth);
    WorkspaceLayout layout;
    q_columns = layout.reserve<float>(n.depth * kTileQueries);
    dy_columns = layout.reserve<float>(n.value_depth * kTileQueries);
    dq_columns = layout.reserve<float>(n.depth * kTileQueries);
    q_rows = layout.reserve<float>(depth * kTileQueries);
    dy_rows = layout.reserve<float>(value_depth * kTileQueries);
    p = layout.reserve<float>(kTileKeys * kTileQueries);
    ds = layout.reserve<float>(kTileKeys * kTileQueries);
    dk = layout.reserve<float>(checked_multiply(range_keys, depth));
    dv = layout.reserve<float>(checked_multiply(range_keys, value_depth));
    k = layout.reserve<float>(copied_floats(n.k, range_keys));
    v = layout.reserve<float>(copied_floats(n.v, range_keys));
    bytes = layout.bytes();
  }

  KeyRanges ranges;
  // Offsets in bytes.
  std::size_t q_columns;  ///< [depth][query], with scale and log2(e)
  std::size_t dy_columns;
  std::size_t dq_columns;
  std::size_t q_rows;  ///< [query][padded depth], with scale
  std::size_t dy_rows;
  std::size_t p;
  std::size_t ds;
  std::size_t dk;  ///< [key][padded depth]
  std::size_t dv;
  std::size_t k;
  std::size_t v;
  std::size_t bytes;
};

/// Rows copied to `width` columns, times `factor`; 0 beyond those that are there.
void copy_rows(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
               float factor, std::int64_t all_rows, std::int64_t width, float* out) {
  std::fill_n(out, all_rows * width, 0.0F);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) out[r * width + c] = x[r * step + c] * factor;
  }
}

/// Of so many registers of queries: p holds scores and becomes probabilities; ds holds v dy^T.
/// Not inline, so that the constants of exp2 stay in registers.
template <int registers>
[[gnu::noinline]] void differentiate_queries(std::int64_t keys, const float* log_sums,
                                             const float* shares, float* p, float* ds) {
  constexpr int kLanes = kRegisterLanes;
  using Register = Lanes<kLanes>;
  Register log_sum[registers];
  Register share[registers];
  for (int v = 0; v < registers; ++v) {
    log_sum[v] = load<kLanes>(log_sums + v * kLanes);
    share[v] = load<kLanes>(shares + v * kLanes);
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    for (int v = 0; v < registers; ++v) {
      const std::int64_t at = j * kTileQueries + v * kLanes;
      const Register probability = exp2(load<kLanes>(p + at) - log_sum[v]);
      store(p + at, probability);
      store(ds + at, probability * (load<kLanes>(ds + at) - share[v]));
    }
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
        depth_(padded_depth(n.depth)),
        value_depth_(padded_depth(n.value_depth)),
        q_columns_(at(scratch, cut.q_columns)),
        dy_columns_(at(scratch, cut.dy_columns)),
        dq_columns_(at(scratch, cut.dq_columns)),
        q_rows_(at(scratch, cut.q_rows)),
        dy_rows_(at(scratch, cut.dy_rows)),
        p_(at(scratch, cut.p)),
        ds_(at(scratch, cut.ds)),
        dk_(at(scratch, cut.dk)),
        dv_(at(scratch, cut.dv)),
        k_(close_rows(args.input<float>(n.operand(1)) + n.k.offset(problem) + first_ * n.k.row_step,
                      n.k, count_, at(scratch, cut.k))),
        v_(close_rows(args.input<float>(n.operand(2)) + n.v.offset(problem) + first_ * n.v.row_step,
                      n.v, count_, at(scratch, cut.v))) {
    std::fill_n(dk_, count_ * depth_, 0.0F);
    std::fill_n(dv_, count_ * value_depth_, 0.0F);
  }

  /// dq: this problem's, rows `step` apart.
  void run(const std::vector<std::int64_t>& visible, float* dq, std::int64_t step) {
    for (std::int64_t block = 0; block * kTileQueries < n_.queries; ++block) {
      const TileRows rows(block, n_.queries);
      read_queries(rows);
      std::fill_n(dq_columns_, n_.depth * kTileQueries, 0.0F);
      const std::int64_t last = std::min(count_, visible[static_cast<std::size_t>(block)] - first_);
      for (std::int64_t first = 0; first < last; first += kTileKeys) {
        take_tile(rows, first, std::min(kTileKeys, last - first));
      }
      transpose_out(dq_columns_, rows.count, n_.depth, n_.scale, dq + rows.first * step, step);
    }
  }

  void write(float* dk, float* dv) const {
    dk += n_.k.offset(problem_) + first_ * n_.k.row_step;
    dv += n_.v.offset(problem_) + first_ * n_.v.row_step;
    for (std::int64_t j = 0; j < count_; ++j) {
      std::copy_n(dk_ + j * depth_, n_.depth, dk + j * n_.k.row_step);
      std::copy_n(dv_ + j * value_depth_, n_.value_depth, dv + j * n_.v.row_step);
    }
  }

 private:
  static float* at(std::byte* scratch, std::size_t offset) {
    return reinterpret_cast<float*>(scratch + offset);
  }

  void read_queries(const TileRows& rows) {
    const std::int64_t y_step = n_.y.row_step;
    const float* const q =
        args_.input<float>(0) + n_.q.offset(problem_) + rows.first * n_.q.row_step;
    const float* const dy = args_.input<float>(5) + n_.y.offset(problem_) + rows.first * y_step;
    transpose_in(q, n_.q.row_step, rows.count, n_.depth, n_.scale * kLog2E, q_columns_);
    transpose_in(dy, y_step, rows.count, n_.value_depth, 1.0F, dy_columns_);
    copy_rows(q, n_.q.row_step, rows.count, n_.depth, n_.scale, rows.lanes(), depth_, q_rows_);
    copy_rows(dy, y_step, rows.count, n_.value_depth, 1.0F, rows.lanes(), value_depth_, dy_rows_);
    sums_ = QuerySums(n_, args_, problem_, rows);
  }

  /// Each tile of keys asks for its share of the next queries.
  void prefetch_queries(const TileRows& rows, std::int64_t first, std::int64_t keys) {
    const std::int64_t from = kTileQueries * first / count_;
    const std::int64_t count = kTileQueries * (first + keys) / count_ - from;
    const std::int64_t next = rows.first + kTileQueries + from;
    const auto ask = [&](int input, const SequenceRows& x) {
      prefetch_rows(args_.input<float>(input) + x.offset(problem_) + next * x.row_step, x.row_step,
                    count, x.depth);
    };
    ask(0, n_.q);
    ask(5, n_.y);
  }

  void take_tile(const TileRows& rows, std::int64_t first, std::int64_t keys) {
    using Row = TileOperand<std::integral_constant<std::int64_t, kTileQueries>>;
    using Any = TileOperand<std::int64_t>;
    const float* const k = k_[first];
    const float* const v = v_[first];
    tile_product<false>(Any{k, k_.step, 1}, q_columns_, kTileQueries, keys, n_.depth, rows.lanes(),
                        p_, kTileQueries);
    if (n_.has_bias) {
      const float* const bias = args_.input<float>(kAttentionGradBias) + n_.bias.offset(problem_) +
                                rows.first * n_.bias.query_step +
                                (first_ + first) * n_.bias.key_step;
      add_bias(n_.bias, bias, rows, keys, p_);
    }
    if (rows.first == 0) prefetch_rows(k_[first + keys], k_.step, keys, n_.depth);
    tile_product<false>(Any{v, v_.step, 1}, dy_columns_, kTileQueries, keys, n_.value_depth,
                        rows.lanes(), ds_, kTileQueries);
    if (rows.first == 0) {
      prefetch_rows(v_[first + keys], v_.step, keys, n_.value_depth);
    }
    for_each_register_group(rows.lanes(), [&]<int registers>(std::int64_t i) {
      differentiate_queries<registers>(keys, sums_.log_sum + i, sums_.share + i, p_ + i, ds_ + i);
    });
    tile_product<true>(Row{p_, {}, 1}, dy_rows_, value_depth_, keys, rows.lanes(), value_depth_,
                       dv_ + first * value_depth_, value_depth_);
    prefetch_queries(rows, first, keys);
    tile_product<true>(Row{ds_, {}, 1}, q_rows_, depth_, keys, rows.lanes(), depth_,
                       dk_ + first * depth_, depth_);
    tile_product<true>(Any{k, 1, k_.step}, ds_, kTileQueries, n_.depth, keys, rows.lanes(),
                       dq_columns_, kTileQueries);
  }

  const AttentionGeometry& n_;
  const KernelArgs& args_;
  std::int64_t problem_;
  std::int64_t first_;
  std::int64_t count_;
  std::int64_t depth_;
  std::int64_t value_depth_;
  float* q_columns_;
  float* dy_columns_;
  float* dq_columns_;
  float* q_rows_;
  float* dy_rows_;
  float* p_;
  float* ds_;
  float* dk_;
  float* dv_;
  KeyRows k_;
  KeyRows v_;
  QuerySums sums_;
};

}  // namespace

Kernel make_attention_grad_by_tiles(KernelRequest& request) {
  if (request.dtype() != DType::f32) return {};
  const AttentionGeometry n(request, kAttentionGradBias);
  const Cut cut(n);
  const Pieces pieces(checked_multiply(n.problems, cut.ranges.count), 2.5 * n.multiply_adds());
  WorkspaceLayout layout;
  const std::size_t scratch =
      layout.reserve_bytes(cut.bytes * static_cast<std::size_t>(pieces.count));
  const std::int64_t size = checked_multiply(n.queries, n.depth);
  const std::size_t parts =
      layout.reserve<float>(cut.ranges.count > 1 ? checked_multiply(pieces.tasks, size) : 0);
  request.need_workspace(layout.bytes());
  const std::vector<std::int64_t> visible =
      visible_keys(request, n, kAttentionGradBias, kTileQueries);
  return [n, cut, pieces, scratch, parts, size, visible](const KernelArgs& args) {
    pieces.for_each([&](std::int64_t piece, std::int64_t first, std::int64_t last) {
      std::byte* const memory =
          workspace_at<std::byte>(args, scratch + cut.bytes * static_cast<std::size_t>(piece));
      for (std::int64_t task = first; task < last; ++task) {
        const std::int64_t problem = task / cut.ranges.count;
        KeyRange range(n, cut, args, memory, problem, task % cut.ranges.count);
        if (cut.ranges.count > 1) {
          range.run(visible, workspace_at<float>(args, parts) + task * size, n.depth);
        } else {
          range.run(visible, args.output<float>(0) + n.q.offset(problem), n.q.row_step);
        }
        range.write(args.output<float>(n.operand(1)), args.output<float>(n.operand(2)));
      }
    });
    if (cut.ranges.count > 1) {
      add_parts(n, cut.ranges.count, workspace_at<float>(args, parts), args.output<float>(0));
    }
  };
}

}  // namespace graft
