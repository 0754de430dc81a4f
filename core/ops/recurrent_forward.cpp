// The forward kernel of LSTM, GRU and RNN. For each direction: one product of all inputs with W,
// then step by step the product of the state with R and the point-wise cell. Gates and states are
// kept where the training form wants them, else in the workspace.
#include "core/ops/recurrent_run_internal.h"

namespace graft {
namespace {

using recurrent::CellParameters;
using recurrent::ForwardRow;
using recurrent::Lengths;
using recurrent::load_state;
using recurrent::Stage;
using recurrent::store_state;
using recurrent::TimeOrder;

template <class T, class Cell>
class ForwardDirection {
 public:
  /// `layout` has what all directions share; `x` in it is the input by time when the batch stands
  /// first.
  ForwardDirection(const KernelRequest& request, const RecurrentSettings& settings,
                   std::int64_t direction, const Cell& cell, MakeProduct<T> make_product,
                   std::size_t x, WorkspaceLayout layout)
      : sizes_(request, settings, kX, kR),
        direction_(direction),
        order_(settings, sizes_, direction),
        cell_(cell),
        couples_forget_(settings.couples_forget),
        gate_columns_(settings.gates() * sizes_.hidden),
        row_(settings.slots() * sizes_.hidden),
        keeps_(request.node().domain() == kInternalDomain),
        gates_output_(settings.gates_output()),
        kept_states_(settings.states() * (sizes_.steps + 1) * sizes_.state()),
        x_(x) {
    const std::int64_t n = sizes_.hidden;
    project_ = make_product({.m = sizes_.rows(),
                             .n = gate_columns_,
                             .k = sizes_.input,
                             .lda = sizes_.input,
                             .ldb = sizes_.input,
                             .ldc = row_,
                             .transposes_b = true});
    std::size_t scratch = project_.scratch_bytes;
    for (const Stage& stage : Cell::kStages) {
      const std::int64_t columns = stage.count * n;
      products_.emplace_back(make_product({.m = sizes_.batch,
                                           .n = columns,
                                           .k = n,
                                           .lda = n,
                                           .ldb = n,
                                           .ldc = columns,
                                           .transposes_b = true,
                                           .packs_b = true}),
                             layout);
      scratch = std::max(scratch, products_.back().scratch_bytes());
    }
    if (!keeps_) {
      gates_ = layout.reserve<T>(sizes_.rows() * row_);
      states_ = layout.reserve<T>(kept_states_);
    }
    recurrent_ = layout.reserve<T>(sizes_.batch * gate_columns_);
    reset_ = layout.reserve<T>(sizes_.state());
    bias_ = layout.reserve<T>(row_);
    peepholes_ = layout.reserve<T>(3 * n);
    scratch_ = layout.reserve_bytes(scratch);
    workspace_bytes_ = layout.bytes();
  }

  std::size_t workspace_bytes() const { return workspace_bytes_; }

  void operator()(const KernelArgs& args) const {
    T* const h = keeps_ ? args.output<T>(gates_output_ + 1) + direction_ * kept_states_
                        : workspace_at<T>(args, states_);
    T* const c = Cell::kHasC ? h + (sizes_.steps + 1) * sizes_.state() : nullptr;
    const auto state_of = [&](T* states, std::int64_t index) {
      return states == nullptr ? nullptr : states + index * sizes_.state();
    };
    const std::int64_t first = order_.first_state();
    load_state(sizes_, direction_, args.input<T>(kInitialH), state_of(h, first));
    if (Cell::kHasC) {
      load_state(sizes_, direction_, args.input<T>(kInitialC), state_of(c, first));
    }
    T* const gates = project(args);
    const CellParameters<T> parameters = load_parameters(args);
    const Weights weights = prepare_weights(args);
    for (std::int64_t step = 0; step < sizes_.steps; ++step) {
      const std::int64_t time = order_.time(step);
      run_step(args, parameters, weights, time,
               {.slots = gates + time * sizes_.batch * row_,
                .recurrent = workspace_at<T>(args, recurrent_),
                .h = state_of(h, order_.before(time)),
                .c = state_of(c, order_.before(time)),
                .next_h = state_of(h, order_.after(time)),
                .next_c = state_of(c, order_.after(time)),
                .reset_h = workspace_at<T>(args, reset_)});
    }
    const std::int64_t last = order_.last_state();
    store_state(sizes_, direction_, state_of(h, last), args.output<T>(kYh));
    if (Cell::kHasC) {
      store_state(sizes_, direction_, state_of(c, last), args.output<T>(kYc));
    }
  }

 private:
  using Weights = std::array<const void*, Cell::kStages.size()>;

  /// Returns the gates with the input's part of each.
  T* project(const KernelArgs& args) const {
    T* const gates = keeps_ ? args.output<T>(gates_output_) + direction_ * sizes_.rows() * row_
                            : workspace_at<T>(args, gates_);
    const T* const x = sizes_.batch_first ? workspace_at<T>(args, x_) : args.input<T>(kX);
    const T* const w = args.input<T>(kW) + direction_ * gate_columns_ * sizes_.input;
    project_.run(x, w, gates, workspace_at<std::byte>(args, scratch_));
    return gates;
  }

  Weights prepare_weights(const KernelArgs& args) const {
    Weights weights;
    const std::int64_t n = sizes_.hidden;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = products_[i].prepare(
          args, args.input<T>(kR) + (direction_ * gate_columns_ + Cell::kStages[i].first * n) * n);
    }
    return weights;
  }

  CellParameters<T> load_parameters(const KernelArgs& args) const {
    const std::int64_t n = sizes_.hidden;
    T* const bias = workspace_at<T>(args, bias_);
    std::fill_n(bias, row_, T{0});
    if (const T* given = args.input<T>(kB)) {
      given += direction_ * 2 * gate_columns_;
      // The recurrent bias of the last gate stays apart where that gate's product is reset.
      const std::int64_t summed = Cell::kSplitsGates ? gate_columns_ - n : gate_columns_;
      std::copy_n(given, gate_columns_, bias);
      for (std::int64_t j = 0; j < summed; ++j) bias[j] += given[gate_columns_ + j];
      if (Cell::kSplitsGates) std::copy_n(given + 2 * gate_columns_ - n, n, bias + gate_columns_);
    }
    T* const peepholes = workspace_at<T>(args, peepholes_);
    const T* const given = args.input<T>(kP);
    if (given == nullptr) {
      std::fill_n(peepholes, 3 * n, T{0});
    } else {
      std::copy_n(given + direction_ * 3 * n, 3 * n, peepholes);
    }
    return {n, couples_forget_, bias, peepholes};
  }

  /// `all`: where the rows of the step start.
  void run_step(const KernelArgs& args, const CellParameters<T>& parameters, const Weights& weights,
                std::int64_t time, const ForwardRow<T>& all) const {
    const std::int64_t n = sizes_.hidden;
    const Lengths lengths(args.input<std::int32_t>(kLengths));
    T* const product = workspace_at<T>(args, recurrent_);
    void* const scratch = workspace_at<std::byte>(args, scratch_);
    T* const y = args.output<T>(kY);
    for (std::size_t stage = 0; stage < weights.size(); ++stage) {
      products_[stage].run(stage == 0 ? all.h : all.reset_h, weights[stage], product, scratch);
      const bool is_last = stage + 1 == weights.size();
      parallel_for(sizes_.batch, sizes_.grain(), [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t b = first; b < last; ++b) {
          ForwardRow<T> row = all;
          row.slots += b * row_;
          row.recurrent += b * Cell::kStages[stage].count * n;
          for (const T** state : {&row.h, &row.c}) *state += *state == nullptr ? 0 : b * n;
          for (T** state : {&row.next_h, &row.next_c, &row.reset_h}) {
            *state += *state == nullptr ? 0 : b * n;
          }
          const bool is_active = lengths.has(b, time);
          if (is_active) cell_.forward(static_cast<int>(stage), parameters, row);
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
      if (Cell::kHasC) std::copy_n(row.c, n, row.next_c);
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
  Cell cell_;
  bool couples_forget_;
  std::int64_t gate_columns_;
  std::int64_t row_;  ///< slots of one sample and time
  bool keeps_;        ///< the training form
  int gates_output_;
  std::int64_t kept_states_;
  Product<T> project_;
  std::vector<RepeatedProduct<T>> products_;
  std::size_t x_;
  std::size_t gates_ = 0;
  std::size_t states_ = 0;
  std::size_t recurrent_ = 0;
  std::size_t reset_ = 0;
  std::size_t bias_ = 0;
  std::size_t peepholes_ = 0;
  std::size_t scratch_ = 0;
  std::size_t workspace_bytes_ = 0;
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
  std::size_t bytes = 0;
  for (std::int64_t d = 0; d < settings.directions; ++d) {
    recurrent::visit_cell<T>(settings, d, [&](const auto& cell) {
      ForwardDirection part(request, settings, d, cell, make_product, x, layout);
      bytes = std::max(bytes, part.workspace_bytes());
      parts.emplace_back(std::move(part));
    });
  }
  request.need_workspace(bytes);
  return recurrent::in_order(std::move(parts));
}

template Kernel make_recurrent<float>(KernelRequest& request, MakeProduct<float> make_product);
template Kernel make_recurrent<double>(KernelRequest& request, MakeProduct<double> make_product);

}  // namespace graft
