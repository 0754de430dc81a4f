// The gradient kernel of LSTM, GRU and RNN. For each direction, from the last step to the first:
// the point-wise gradient of the cell, then its product with R, which is the gradient of the state
// before, in chains of samples that run beside each other. The gradients of X, W, R, B and P are
// then products and sums over all steps at once.
//
// Long: BackwardDirection, for its steps work on the buffers that its constructor lays out; parts
// would hand all of them to one another.
#include "core/base/at.h"
#include "core/ops/recurrent/recurrent_run.h"

namespace graft {
namespace {

using recurrent::BackwardRow;
using recurrent::CellParameters;
using recurrent::Chain;
using recurrent::Chains;
using recurrent::Lengths;
using recurrent::load_state;
using recurrent::Stage;
using recurrent::store_state;
using recurrent::TimeOrder;

/// out[j] = sum over i of element(i, j), in f64.
template <class T, class Element>
void sum_columns(std::int64_t rows, std::int64_t columns, T* out, const Element& element) {
  constexpr std::int64_t kTile = 64;
  const std::int64_t tiles = (columns + kTile - 1) / kTile;
  parallel_for(tiles, 16384 / (rows * kTile + 1) + 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t tile = first; tile < last; ++tile) {
      const std::int64_t start = tile * kTile;
      const std::int64_t width = std::min(kTile, columns - start);
      std::array<double, kTile> sums{};
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          at(sums, j) += static_cast<double>(element(i, start + j));
        }
      }
      for (std::int64_t j = 0; j < width; ++j) {
        out[start + j] = static_cast<T>(at(sums, j));
      }
    }
  });
}

template <class T>
class BackwardDirection {
 public:
  /// `layout` has what all directions share: the input by time and its gradient at `x` and `dx`
  /// when the batch stands first.
  BackwardDirection(const KernelRequest& request, const RecurrentSettings& settings,
                    std::int64_t direction, MakeProduct<T> make_product, std::size_t x,
                    std::size_t dx, const Chains& chains, WorkspaceLayout& layout)
      : sizes_(request, settings, kGradX, kGradR),
        direction_(direction),
        order_(settings, sizes_, direction),
        cell_(recurrent::row_cell<T, BackwardRow<T>>(
            settings, direction,
            [](const auto& cell, const auto&... row) { cell.backward(row...); })),
        couples_forget_(settings.couples_forget),
        gate_columns_(settings.gates() * sizes_.hidden),
        row_(settings.slots() * sizes_.hidden),
        kept_states_(settings.states() * (sizes_.steps + 1) * sizes_.state()),
        x_(x),
        dx_(dx) {
    const std::int64_t n = sizes_.hidden;
    scratch_ = layout.reserve_bytes(make_weight_products(make_product));
    for (const Chain& chain : chains.of_direction) {
      chains_.push_back(make_chain(chain, chains.at_once, make_product, layout));
    }
    dgates_ = layout.reserve<T>(sizes_.rows() * gate_columns_);
    drecurrent_ = cell_.splits_gates ? layout.reserve<T>(sizes_.rows() * gate_columns_) : dgates_;
    if (cell_.stages.size() > 1) reset_h_ = layout.reserve<T>(sizes_.rows() * n);
    for (std::size_t* state : {&carry_, &dh_, &dc_, &reset_dh_}) {
      *state = layout.reserve<T>(sizes_.state());
    }
    peepholes_ = layout.reserve<T>(3 * n);
  }

  std::size_t chain_count() const { return chains_.size(); }

  void begin(const KernelArgs& args) const {
    std::fill_n(workspace_at<T>(args, carry_), sizes_.state(), T{0});
    load_state(sizes_, direction_, args.input<T>(kGradYh), workspace_at<T>(args, dh_));
    load_state(sizes_, direction_, args.input<T>(kGradYc), workspace_at<T>(args, dc_));
    if (args.input<T>(kGradP) == nullptr) {
      std::fill_n(workspace_at<T>(args, peepholes_), 3 * sizes_.hidden, T{0});
    }
  }

  void run_chain(const KernelArgs& args, std::size_t index) const {
    const ChainProducts& chain = chains_[index];
    const Weights weights = prepare_weights(args, chain);
    for (std::int64_t step = sizes_.steps; step-- > 0;) {
      run_step(args, chain, weights, order_.time(step));
    }
  }

  void end(const KernelArgs& args) const {
    T* const dh = workspace_at<T>(args, dh_);
    const T* const carry = workspace_at<T>(args, carry_);
    for (std::int64_t i = 0; i < sizes_.state(); ++i) dh[i] += carry[i];
    store_state(sizes_, direction_, dh, args.output<T>(kDinitialH));
    store_state(sizes_, direction_, workspace_at<T>(args, dc_), args.output<T>(kDinitialC));
    write_products(args);
    write_biases(args);
    write_peepholes(args);
  }

 private:
  using Weights = std::array<const void*, recurrent::kMostStages>;

  struct ChainProducts {
    Chain samples;
    std::vector<RepeatedProduct<T>> of_stages;
    std::size_t scratch;
  };

  ChainProducts make_chain(const Chain& samples, bool is_serial, MakeProduct<T> make_product,
                           WorkspaceLayout& layout) const {
    const std::int64_t n = sizes_.hidden;
    ChainProducts chain{samples, {}, 0};
    std::size_t scratch = 0;
    for (const Stage& stage : cell_.stages) {
      chain.of_stages.emplace_back(make_product({.m = samples.count,
                                                 .n = n,
                                                 .k = stage.count * n,
                                                 .lda = gate_columns_,
                                                 .ldb = n,
                                                 .ldc = n,
                                                 .packs_b = true,
                                                 .is_serial = is_serial}),
                                   layout);
      scratch = std::max(scratch, chain.of_stages.back().scratch_bytes());
    }
    chain.scratch = layout.reserve_bytes(scratch);
    return chain;
  }

  /// Those over all steps. Returns the scratch bytes that they need.
  std::size_t make_weight_products(MakeProduct<T> make_product) {
    const std::int64_t n = sizes_.hidden;
    dx_product_ = make_product({.m = sizes_.rows(),
                                .n = sizes_.input,
                                .k = gate_columns_,
                                .lda = gate_columns_,
                                .ldb = sizes_.input,
                                .ldc = sizes_.input,
                                .adds = direction_ > 0});
    dw_product_ = make_product({.m = gate_columns_,
                                .n = sizes_.input,
                                .k = sizes_.rows(),
                                .lda = gate_columns_,
                                .ldb = sizes_.input,
                                .ldc = sizes_.input,
                                .transposes_a = true});
    std::size_t scratch = std::max(dx_product_.scratch_bytes, dw_product_.scratch_bytes);
    for (const Stage& stage : cell_.stages) {
      dr_products_.push_back(make_product({.m = stage.count * n,
                                           .n = n,
                                           .k = sizes_.rows(),
                                           .lda = gate_columns_,
                                           .ldb = n,
                                           .ldc = n,
                                           .transposes_a = true}));
      scratch = std::max(scratch, dr_products_.back().scratch_bytes);
    }
    return scratch;
  }

  const T* gates(const KernelArgs& args) const {
    return args.input<T>(kGradGates) + direction_ * sizes_.rows() * row_;
  }
  /// State 0 (h) or 1 (c) of this direction before or after `time`.
  const T* state(const KernelArgs& args, std::int64_t which, std::int64_t index) const {
    return args.input<T>(kGradStates) + direction_ * kept_states_ +
           (which * (sizes_.steps + 1) + index) * sizes_.state();
  }
  const T* r(const KernelArgs& args, const Stage& stage) const {
    return args.input<T>(kGradR) +
           (direction_ * gate_columns_ + stage.first * sizes_.hidden) * sizes_.hidden;
  }

  CellParameters<T> parameters(const KernelArgs& args) const {
    const std::int64_t n = sizes_.hidden;
    const T* const given = args.input<T>(kGradP);
    return {n, couples_forget_, nullptr,
            given != nullptr ? given + direction_ * 3 * n : workspace_at<T>(args, peepholes_)};
  }

  Weights prepare_weights(const KernelArgs& args, const ChainProducts& chain) const {
    Weights weights;
    for (std::size_t i = 0; i < cell_.stages.size(); ++i) {
      weights[i] = chain.of_stages[i].prepare(args, r(args, cell_.stages[i]));
    }
    return weights;
  }

  /// Where the rows of a time start.
  BackwardRow<T> rows_at(const KernelArgs& args, std::int64_t time) const {
    const std::int64_t first = time * sizes_.batch;
    return {.slots = gates(args) + first * row_,
            .h = state(args, 0, order_.before(time)),
            .c = cell_.has_c ? state(args, 1, order_.before(time)) : nullptr,
            .next_c = cell_.has_c ? state(args, 1, order_.after(time)) : nullptr,
            .dh = workspace_at<T>(args, dh_),
            .dc = workspace_at<T>(args, dc_),
            .input = workspace_at<T>(args, dgates_) + first * gate_columns_,
            .recurrent = workspace_at<T>(args, drecurrent_) + first * gate_columns_,
            .reset_h = workspace_at<T>(args, reset_h_) +
                       (cell_.stages.size() > 1 ? first * sizes_.hidden : 0),
            .reset_dh = workspace_at<T>(args, reset_dh_)};
  }

  void advance(BackwardRow<T>& row, std::int64_t b) const {
    const std::int64_t n = sizes_.hidden;
    row.slots += b * row_;
    row.h += b * n;
    if (cell_.has_c) {
      row.c += b * n;
      row.next_c += b * n;
    }
    row.dh += b * n;
    row.dc += b * n;
    row.input += b * gate_columns_;
    row.recurrent += b * gate_columns_;
    if (cell_.stages.size() > 1) row.reset_h += b * n;
    row.reset_dh += b * n;
  }

  void run_step(const KernelArgs& args, const ChainProducts& chain, const Weights& weights,
                std::int64_t time) const {
    const std::int64_t n = sizes_.hidden;
    const CellParameters<T> cell_parameters = parameters(args);
    const std::int64_t begin = chain.samples.first;
    const std::int64_t grain = sizes_.grain();
    const Lengths lengths(args.input<std::int32_t>(kGradLengths));
    const BackwardRow<T> all = rows_at(args, time);
    T* const carry = workspace_at<T>(args, carry_);
    const T* const dy = args.input<T>(kGradY);
    for (std::size_t pass = 0; pass < cell_.stages.size(); ++pass) {
      parallel_for(chain.samples.count, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t b = begin + first; b < begin + last; ++b) {
          BackwardRow<T> row = all;
          advance(row, b);
          const bool is_active = lengths.has(b, time);
          if (pass == 0) {
            const T* const from_y =
                is_active && dy != nullptr ? dy + sizes_.y_at(time, b, direction_) : nullptr;
            collect(row, carry + b * n, from_y);
            if (!is_active) clear(row);
          }
          if (is_active) cell_.run(static_cast<int>(pass), cell_parameters, row);
        }
      });
      const std::size_t stage = cell_.stages.size() - 1 - pass;
      T* const to = stage == 0 ? carry : workspace_at<T>(args, reset_dh_);
      chain.of_stages[stage].run(
          all.recurrent + begin * gate_columns_ + cell_.stages[stage].first * n, weights[stage],
          to + begin * n, workspace_at<std::byte>(args, chain.scratch));
    }
  }

  /// The whole gradient of h after the step.
  void collect(const BackwardRow<T>& row, const T* carry, const T* dy) const {
    for (std::int64_t j = 0; j < sizes_.hidden; ++j) row.dh[j] += carry[j];
    for (std::int64_t j = 0; dy != nullptr && j < sizes_.hidden; ++j) row.dh[j] += dy[j];
  }

  /// No gradient to gates that were not computed; that of the state stays.
  void clear(const BackwardRow<T>& row) const {
    std::fill_n(row.input, gate_columns_, T{0});
    if (cell_.splits_gates) std::fill_n(row.recurrent, gate_columns_, T{0});
    if (cell_.stages.size() > 1) std::fill_n(row.reset_h, sizes_.hidden, T{0});
  }

  void write_products(const KernelArgs& args) const {
    const T* const dgates = workspace_at<T>(args, dgates_);
    void* const scratch = workspace_at<std::byte>(args, scratch_);
    const std::int64_t w_at = direction_ * gate_columns_ * sizes_.input;
    if (T* dx = args.output<T>(kDx)) {
      if (sizes_.batch_first) dx = workspace_at<T>(args, dx_);
      dx_product_.run(dgates, args.input<T>(kGradW) + w_at, dx, scratch);
    }
    if (T* const dw = args.output<T>(kDw)) {
      const T* const x = sizes_.batch_first ? workspace_at<T>(args, x_) : args.input<T>(kGradX);
      dw_product_.run(dgates, x, dw + w_at, scratch);
    }
    T* const dr = args.output<T>(kDr);
    for (std::size_t i = 0; dr != nullptr && i < cell_.stages.size(); ++i) {
      const std::int64_t first = cell_.stages[i].first * sizes_.hidden;
      const T* const before =
          i == 0 ? state(args, 0, order_.before(0)) : workspace_at<T>(args, reset_h_);
      dr_products_[i].run(workspace_at<T>(args, drecurrent_) + first, before,
                          dr + (direction_ * gate_columns_ + first) * sizes_.hidden, scratch);
    }
  }

  void write_biases(const KernelArgs& args) const {
    T* db = args.output<T>(kDb);
    if (db == nullptr) return;
    db += direction_ * 2 * gate_columns_;
    const auto sum = [&](std::size_t gradients, T* out) {
      const T* const data = workspace_at<T>(args, gradients);
      sum_columns(sizes_.rows(), gate_columns_, out,
                  [&](std::int64_t i, std::int64_t j) { return data[i * gate_columns_ + j]; });
    };
    sum(dgates_, db);
    if (cell_.splits_gates) {
      sum(drecurrent_, db + gate_columns_);
    } else {
      std::copy_n(db, gate_columns_, db + gate_columns_);
    }
  }

  /// i and f look at c before the step, o at c after it.
  void write_peepholes(const KernelArgs& args) const {
    T* dp = args.output<T>(kDp);
    if (dp == nullptr) return;
    const std::int64_t n = sizes_.hidden;
    dp += direction_ * 3 * n;
    const T* const dgates = workspace_at<T>(args, dgates_);
    for (std::int64_t gate = 0; gate < 3; ++gate) {
      const T* const c = state(args, 1, gate == 1 ? order_.after(0) : order_.before(0));
      sum_columns(sizes_.rows(), n, dp + gate * n, [&](std::int64_t i, std::int64_t j) {
        return dgates[i * gate_columns_ + gate * n + j] * c[i * n + j];
      });
    }
  }

  RecurrentSizes sizes_;
  std::int64_t direction_;
  TimeOrder order_;
  recurrent::RowCell<T, BackwardRow<T>> cell_;
  bool couples_forget_;
  std::int64_t gate_columns_;
  std::int64_t row_;  ///< slots of one sample and time
  std::int64_t kept_states_;
  Product<T> dx_product_;
  Product<T> dw_product_;
  std::vector<Product<T>> dr_products_;
  std::vector<ChainProducts> chains_;
  std::size_t x_;
  std::size_t dx_;
  std::size_t dgates_ = 0;
  std::size_t drecurrent_ = 0;
  std::size_t reset_h_ = 0;
  std::size_t carry_ = 0;
  std::size_t dh_ = 0;
  std::size_t dc_ = 0;
  std::size_t reset_dh_ = 0;
  std::size_t peepholes_ = 0;
  std::size_t scratch_ = 0;
};

}  // namespace

template <class T>
Kernel make_recurrent_grad(KernelRequest& request, MakeProduct<T> make_product) {
  const RecurrentSettings settings(request.node());
  const RecurrentSizes sizes(request, settings, kGradX, kGradR);
  WorkspaceLayout layout;
  std::vector<Kernel> parts;
  std::size_t x = 0;
  std::size_t dx = 0;
  if (settings.batch_first) {
    x = layout.reserve<T>(request.shape(kGradX).size());
    dx = layout.reserve<T>(request.shape(kGradX).size());
    parts.emplace_back([sizes, x](const KernelArgs& args) {
      recurrent::swap_axes(args.input<T>(kGradX), sizes.batch, sizes.steps, sizes.input,
                           workspace_at<T>(args, x));
    });
  }
  const Chains chains = recurrent::divide_samples(sizes, settings.gates() * sizes.hidden);
  std::vector<recurrent::DirectionWork> directions;
  for (std::int64_t d = 0; d < settings.directions; ++d) {
    directions.push_back(recurrent::work_of(
        BackwardDirection<T>(request, settings, d, make_product, x, dx, chains, layout)));
  }
  parts.push_back(recurrent::run_directions(std::move(directions), chains.at_once));
  if (settings.batch_first && request.has_output(kDx)) {
    parts.emplace_back([sizes, dx](const KernelArgs& args) {
      recurrent::swap_axes(workspace_at<T>(args, dx), sizes.steps, sizes.batch, sizes.input,
                           args.output<T>(kDx));
    });
  }
  request.need_workspace(layout.bytes());
  return recurrent::in_order(std::move(parts));
}

template Kernel make_recurrent_grad<float>(KernelRequest& request, MakeProduct<float> make_product);
template Kernel make_recurrent_grad<double>(KernelRequest& request,
                                            MakeProduct<double> make_product);

}  // namespace graft
