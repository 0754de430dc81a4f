// The forward kernel of LSTM, GRU and RNN. For each direction: one product of all inputs with W,
// then step by step the product of the state with R and the point-wise cell, in chains of samples
// that run beside each other. Gates and states are kept where the training form wants them, else in
// the workspace.
//
// Long: ForwardDirection, for its steps work on the buffers that its constructor lays out; parts
// would hand all of them to one another.
#include <optional>

#include "core/ops/recurrent/recurrent_run.h"

namespace graft {
namespace {

using recurrent::CellParameters;
using recurrent::Chain;
using recurrent::Chains;
using recurrent::ForwardRow;
using recurrent::Lengths;
using recurrent::load_state;
using recurrent::Stage;
using recurrent::store_state;
using recurrent::TimeOrder;

template <class T>
class ForwardDirection {
 public:
  /// `layout` has what all directions share; `x` in it is the input by time when the batch stands
  /// first.
  ForwardDirection(const KernelRequest& request, const RecurrentSettings& settings,
                   std::int64_t direction, MakeProduct<T> make_product, std::size_t x,
                   const Chains& chains, WorkspaceLayout& layout)
      : sizes_(request, settings, kX, kR),
        direction_(direction),
        order_(settings, sizes_, direction),
        cell_(recurrent::row_cell<T, ForwardRow<T>>(
            settings, direction,
            [](const auto& cell, const auto&... row) { cell.forward(row...); })),
        couples_forget_(settings.couples_forget),
        gate_columns_(settings.gates() * sizes_.hidden),
        row_(settings.slots() * sizes_.hidden),
        keeps_(request.node().domain() == kInternalDomain),
        gates_output_(settings.gates_output()),
        kept_states_(settings.states() * (sizes_.steps + 1) * sizes_.state()),
        x_(x) {
    const std::int64_t n = sizes_.hidden;
    const T* const w = known(request, kW, gate_columns_ * sizes_.input);
    project_.emplace(make_product({.m = sizes_.rows(),
                                   .n = gate_columns_,
                                   .k = sizes_.input,
                                   .lda = sizes_.input,
                                   .ldb = sizes_.input,
                                   .ldc = row_,
                                   .transposes_b = true,
                                   .packs_b = w != nullptr}),
                     layout, w);
    scratch_ = layout.reserve_bytes(project_->scratch_bytes());
    const T* const r = known(request, kR, gate_columns_ * n);
    for (const Chain& chain : chains.of_direction) {
      chains_.push_back(make_chain(chain, chains.at_once, make_product, r, layout));
    }
    if (!keeps_) {
      gates_ = layout.reserve<T>(sizes_.rows() * row_);
      states_ = layout.reserve<T>(kept_states_);
    }
    recurrent_ = layout.reserve<T>(sizes_.batch * gate_columns_);
    reset_ = layout.reserve<T>(sizes_.state());
    bias_ = layout.reserve<T>(row_);
    peepholes_ = layout.reserve<T>(3 * n);
  }

  std::size_t chain_count() const { return chains_.size(); }

  void begin(const KernelArgs& args) const {
    T* const h = states(args);
    const std::int64_t first = order_.first_state();
    load_state(sizes_, direction_, args.input<T>(kInitialH), state_of(h, first));
    if (cell_.has_c) {
      load_state(sizes_, direction_, args.input<T>(kInitialC), state_of(c_of(h), first));
    }
    project(args);
    load_parameters(args);
  }

  void run_chain(const KernelArgs& args, std::size_t index) const {
    T* const h = states(args);
    T* const c = c_of(h);
    T* const slots = gates(args);
    const ChainProducts& chain = chains_[index];
    const Weights weights = prepare_weights(args, chain);
    for (std::int64_t step = 0; step < sizes_.steps; ++step) {
      const std::int64_t time = order_.time(step);
      run_step(args, chain, weights, time,
               {.slots = slots + time * sizes_.batch * row_,
                .recurrent = nullptr,  // by chain and stage
                .h = state_of(h, order_.before(time)),
                .c = state_of(c, order_.before(time)),
                .next_h = state_of(h, order_.after(time)),
                .next_c = state_of(c, order_.after(time)),
                .reset_h = workspace_at<T>(args, reset_)});
    }
  }

  void end(const KernelArgs& args) const {
    T* const h = states(args);
    const std::int64_t last = order_.last_state();
    store_state(sizes_, direction_, state_of(h, last), args.output<T>(kYh));
    if (cell_.has_c) {
      store_state(sizes_, direction_, state_of(c_of(h), last), args.output<T>(kYc));
    }
  }

 private:
  using Weights = std::array<const void*, recurrent::kMostStages>;

  struct ChainProducts {
    Chain samples;
    std::vector<RepeatedProduct<T>> of_stages;
    std::size_t scratch;
  };

  /// This direction's part of a weight that is known before the run; null of another.
  const T* known(const KernelRequest& request, int input, std::int64_t size) const {
    const Tensor all = request.constant(input);
    return all.defined() ? static_cast<const T*>(all.data()) + direction_ * size : nullptr;
  }

  /// `r`: the weights of its direction, where they are known.
  ChainProducts make_chain(const Chain& samples, bool is_serial, MakeProduct<T> make_product,
                           const T* r, WorkspaceLayout& layout) const {
    const std::int64_t n = sizes_.hidden;
    ChainProducts chain{samples, {}, 0};
    std::size_t scratch = 0;
    for (const Stage& stage : cell_.stages) {
      const std::int64_t columns = stage.count * n;
      chain.of_stages.emplace_back(make_product({.m = samples.count,
                                                 .n = columns,
                                                 .k = n,
                                                 .lda = n,
                                                 .ldb = n,
                                                 .ldc = columns,
                                                 .transposes_b = true,
                                                 .packs_b = true,
                                                 .is_serial = is_serial}),
                                   layout, r == nullptr ? nullptr : r + stage.first * n * n);
      scratch = std::max(scratch, chain.of_stages.back().scratch_bytes());
    }
    chain.scratch = layout.reserve_bytes(scratch);
    return chain;
  }

  T* states(const KernelArgs& args) const {
    return keeps_ ? args.output<T>(gates_output_ + 1) + direction_ * kept_states_
                  : workspace_at<T>(args, states_);
  }
  T* c_of(T* h) const { return cell_.has_c ? h + (sizes_.steps + 1) * sizes_.state() : nullptr; }
  T* state_of(T* states, std::int64_t index) const {
    return states == nullptr ? nullptr : states + index * sizes_.state();
  }
  T* gates(const KernelArgs& args) const {
    return keeps_ ? args.output<T>(gates_output_) + direction_ * sizes_.rows() * row_
                  : workspace_at<T>(args, gates_);
  }

  /// Fills the gates with the input's part of each.
  void project(const KernelArgs& args) const {
    const T* const x = sizes_.batch_first ? workspace_at<T>(args, x_) : args.input<T>(kX);
    const T* const w = args.input<T>(kW) + direction_ * gate_columns_ * sizes_.input;
    project_->run(x, project_->prepare(args, w), gates(args),
                  workspace_at<std::byte>(args, scratch_));
  }

  Weights prepare_weights(const KernelArgs& args, const ChainProducts& chain) const {
    Weights weights;
    const std::int64_t n = sizes_.hidden;
    for (std::size_t i = 0; i < cell_.stages.size(); ++i) {
      weights[i] = chain.of_stages[i].prepare(
          args, args.input<T>(kR) + (direction_ * gate_columns_ + cell_.stages[i].first * n) * n);
    }
    return weights;
  }

  void load_parameters(const KernelArgs& args) const {
    const std::int64_t n = sizes_.hidden;
    T* const bias = workspace_at<T>(args, bias_);
    std::fill_n(bias, row_, T{0});
    if (const T* given = args.input<T>(kB)) {
      given += direction_ * 2 * gate_columns_;
      // The recurrent bias of the last gate stays apart where that gate's product is reset.
      const std::int64_t summed = cell_.splits_gates ? gate_columns_ - n : gate_columns_;
      std::copy_n(given, gate_columns_, bias);
      for (std::int64_t j = 0; j < summed; ++j) bias[j] += given[gate_columns_ + j];
      if (cell_.splits_gates) std::copy_n(given + 2 * gate_columns_ - n, n, bias + gate_columns_);
    }
    T* const peepholes = workspace_at<T>(args, peepholes_);
    const T* const given = args.input<T>(kP);
    if (given == nullptr) {
      std::fill_n(peepholes, 3 * n, T{0});
    } else {
      std::copy_n(given + direction_ * 3 * n, 3 * n, peepholes);
    }
  }

  CellParameters<T> parameters(const KernelArgs& args) const {
    return {sizes_.hidden, couples_forget_, workspace_at<T>(args, bias_),
            workspace_at<T>(args, peepholes_)};
  }

  /// `all`: where the rows of the step start.
  void run_step(const KernelArgs& args, const ChainProducts& chain, const Weights& weights,
                std::int64_t time, const ForwardRow<T>& all) const {
    const std::int64_t n = sizes_.hidden;
    const CellParameters<T> cell_parameters = parameters(args);
    const std::int64_t begin = chain.samples.first;
    const std::int64_t grain = sizes_.grain();
    const Lengths lengths(args.input<std::int32_t>(kLengths));
    // Chains may be at different stages: each has a place for its widest one.
    T* const product = workspace_at<T>(args, recurrent_) + begin * gate_columns_;
    void* const scratch = workspace_at<std::byte>(args, chain.scratch);
    T* const y = args.output<T>(kY);
    for (std::size_t stage = 0; stage < cell_.stages.size(); ++stage) {
      chain.of_stages[stage].run((stage == 0 ? all.h : all.reset_h) + begin * n, weights[stage],
                                 product, scratch);
      const bool is_last = stage + 1 == cell_.stages.size();
      parallel_for(chain.samples.count, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t b = begin + first; b < begin + last; ++b) {
          ForwardRow<T> row = all;
          row.slots += b * row_;
          row.recurrent = product + (b - begin) * cell_.stages[stage].count * n;
          for (const T** state : {&row.h, &row.c}) *state += *state == nullptr ? 0 : b * n;
          for (T** state : {&row.next_h, &row.next_c, &row.reset_h}) {
            *state += *state == nullptr ? 0 : b * n;
          }
          const bool is_active = lengths.has(b, time);
          if (is_active) cell_.run(static_cast<int>(stage), cell_parameters, row);
          if (is_last) finish_row(row, is_active, y, time, b);
        }
      });
    }
  }

  void finish_row(const ForwardRow<T>& row, bool is_active, T* y, std::int64_t time,
                  std::int64_t b) const {
    const std::int64_t n = sizes_.hidden;
    if (!is_active) {
      std::fill_n(row.slots, row_, T{0});
      std::copy_n(row.h, n, row.next_h);
      if (cell_.has_c) std::copy_n(row.c, n, row.next_c);
    }
    if (y == nullptr) return;
    T* const out = y + sizes_.y_at(time, b, direction_);
    if (is_active) {
      std::copy_n(row.next_h, n, out);
    } else {
      std::fill_n(out, n, T{0});
    }
  }

  RecurrentSizes sizes_;
  std::int64_t direction_;
  TimeOrder order_;
  recurrent::RowCell<T, ForwardRow<T>> cell_;
  bool couples_forget_;
  std::int64_t gate_columns_;
  std::int64_t row_;  ///< slots of one sample and time
  bool keeps_;        ///< the training form
  int gates_output_;
  std::int64_t kept_states_;
  std::optional<RepeatedProduct<T>> project_;  ///< by the constructor
  std::vector<ChainProducts> chains_;
  std::size_t x_;
  std::size_t gates_ = 0;
  std::size_t states_ = 0;
  std::size_t recurrent_ = 0;
  std::size_t reset_ = 0;
  std::size_t bias_ = 0;
  std::size_t peepholes_ = 0;
  std::size_t scratch_ = 0;
};

}  // namespace

template <class T>
Kernel make_recurrent(KernelRequest& request, MakeProduct<T> make_product) {
  const RecurrentSettings settings(request.node());
  const RecurrentSizes sizes(request, settings, kX, kR);
  WorkspaceLayout layout;
  std::vector<Kernel> parts;
  std::size_t x = 0;
  if (settings.batch_first) {
    x = layout.reserve<T>(request.shape(kX).size());
    parts.emplace_back([sizes, x](const KernelArgs& args) {
      recurrent::swap_axes(args.input<T>(kX), sizes.batch, sizes.steps, sizes.input,
                           workspace_at<T>(args, x));
    });
  }
  const Chains chains = recurrent::divide_samples(sizes, settings.gates() * sizes.hidden);
  std::vector<recurrent::DirectionWork> directions;
  for (std::int64_t d = 0; d < settings.directions; ++d) {
    directions.push_back(recurrent::work_of(
        ForwardDirection<T>(request, settings, d, make_product, x, chains, layout)));
  }
  parts.push_back(recurrent::run_directions(std::move(directions), chains.at_once));
  request.need_workspace(layout.bytes());
  return recurrent::in_order(std::move(parts));
}

template Kernel make_recurrent<float>(KernelRequest& request, MakeProduct<float> make_product);
template Kernel make_recurrent<double>(KernelRequest& request, MakeProduct<double> make_product);

}  // namespace graft
