// LSTM, GRU and RNN forward: one product of all inputs with W, then step by step the product of the
// state with R and the point-wise cell, a thread a hidden element. All of it goes to the stream at
// once. The formulas are those of recurrent_cell.h and recurrent_gru.h.
#include "core/ops/recurrent/recurrent_cuda.h"

#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

enum class Cell { lstm, rnn, gru_gates, gru_candidate, linear_gru };

/// One stage of one step, of all samples; pointers where the rows of the step start.
template <class T>
struct CellStep {
  std::int64_t batch;
  std::int64_t n;  ///< hidden
  std::int64_t gates;
  std::int64_t slot_count;
  std::int64_t columns;  ///< of `recurrent`
  bool couples_forget;
  const T* bias;       ///< [2 * gates * n], or null
  const T* peepholes;  ///< [3 * n], or null
  const std::int32_t* lengths;
  std::int64_t time;
  T* slots;
  const T* recurrent;
  const T* h;
  const T* c;
  T* next_h;
  T* next_c;
  T* reset_h;
  T* y;  ///< null unless this stage is the last and Y is wanted
};

template <class T, Cell cell>
struct RunCell {
  CellStep<T> s;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t b = i / s.n;
    const std::int64_t j = i % s.n;
    const bool is_active = s.lengths == nullptr || s.time < s.lengths[b];
    T* const slots = s.slots + b * s.slot_count * s.n + j;
    const T* const recurrent = s.recurrent + b * s.columns + j;
    if (is_active) {
      step(i, j, slots, recurrent);
    } else {
      for (std::int64_t slot = 0; slot < s.slot_count; ++slot) slots[slot * s.n] = T{0};
      s.next_h[i] = s.h[i];
      if constexpr (cell == Cell::lstm) s.next_c[i] = s.c[i];
      if constexpr (cell == Cell::gru_gates) s.reset_h[i] = T{0};
    }
    if (s.y != nullptr) s.y[i] = is_active ? s.next_h[i] : T{0};
  }

 private:
  __device__ T bias(std::int64_t gate, std::int64_t j) const {
    return s.bias == nullptr ? T{0} : s.bias[gate * s.n + j] + s.bias[(s.gates + gate) * s.n + j];
  }
  __device__ T own_bias(std::int64_t which, std::int64_t j) const {
    return s.bias == nullptr ? T{0} : s.bias[which * s.n + j];
  }
  __device__ T peephole(std::int64_t gate, std::int64_t j) const {
    return s.peepholes == nullptr ? T{0} : s.peepholes[gate * s.n + j];
  }

  /// i: of the state; j: of its row.
  __device__ void step(std::int64_t i, std::int64_t j, T* slots, const T* recurrent) const {
    using device_math::sigmoid;
    const std::int64_t n = s.n;
    const auto sum = [&](std::int64_t gate) {
      return slots[gate * n] + recurrent[gate * n] + bias(gate, j);
    };
    if constexpr (cell == Cell::lstm) {
      const T c = s.c[i];
      const T input = sigmoid(sum(0) + peephole(0, j) * c);
      const T forget = sigmoid(sum(2) + peephole(2, j) * c);
      const T fresh = device_math::tanh(sum(3));
      const T next = (s.couples_forget ? T{1} - input : forget) * c + input * fresh;
      const T output = sigmoid(sum(1) + peephole(1, j) * next);
      s.next_c[i] = next;
      s.next_h[i] = output * device_math::tanh(next);
      slots[0] = input;
      slots[n] = output;
      slots[2 * n] = forget;
      slots[3 * n] = fresh;
    } else if constexpr (cell == Cell::rnn) {
      slots[0] = device_math::tanh(sum(0));
      s.next_h[i] = slots[0];
    } else if constexpr (cell == Cell::gru_gates) {
      slots[0] = sigmoid(sum(0));
      slots[n] = sigmoid(sum(1));
      s.reset_h[i] = slots[n] * s.h[i];
    } else if constexpr (cell == Cell::gru_candidate) {
      slots[2 * n] = device_math::tanh(slots[2 * n] + recurrent[0] + bias(2, j));
      s.next_h[i] = (T{1} - slots[0]) * slots[2 * n] + slots[0] * s.h[i];
    } else {
      const T update = sigmoid(sum(0));
      const T reset = sigmoid(sum(1));
      const T linear = recurrent[2 * n] + own_bias(5, j);
      const T candidate = device_math::tanh(slots[2 * n] + own_bias(2, j) + reset * linear);
      s.next_h[i] = (T{1} - update) * candidate + update * s.h[i];
      slots[0] = update;
      slots[n] = reset;
      slots[2 * n] = candidate;
      slots[3 * n] = linear;
    }
  }
};

template <class T>
class Forward {
 public:
  explicit Forward(KernelRequest& request)
      : settings_(request.node()),
        sizes_(request, settings_, kX, kR),
        keeps_(request.node().domain() == kInternalDomain),
        device_(as_cuda(request.device())) {
    WorkspaceLayout layout;
    recurrent_ = layout.reserve<T>(sizes_.batch * gate_columns());
    reset_ = layout.reserve<T>(sizes_.state());
    if (!keeps_) {
      gates_ = layout.reserve<T>(sizes_.rows() * row());
      states_ = layout.reserve<T>(kept_states());
    }
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    for (std::int64_t d = 0; d < sizes_.directions; ++d) run(args, d);
  }

 private:
  std::int64_t gate_columns() const { return settings_.gates() * sizes_.hidden; }
  std::int64_t row() const { return settings_.slots() * sizes_.hidden; }
  std::int64_t kept_states() const {
    return settings_.states() * (sizes_.steps + 1) * sizes_.state();
  }

  void run(const KernelArgs& args, std::int64_t d) const {
    const recurrent::TimeOrder order(settings_, sizes_, d);
    const std::int64_t state = sizes_.state();
    T* const gates = keeps_ ? args.output<T>(settings_.gates_output()) + d * sizes_.rows() * row()
                            : workspace_at<T>(args, gates_);
    T* const h = keeps_ ? args.output<T>(settings_.states_output()) + d * kept_states()
                        : workspace_at<T>(args, states_);
    T* const c = settings_.states() > 1 ? h + (sizes_.steps + 1) * state : nullptr;
    const std::int64_t first = order.first_state() * state;
    load_state(device_, sizes_, d, args.input<T>(kInitialH), h + first);
    if (c != nullptr) load_state(device_, sizes_, d, args.input<T>(kInitialC), c + first);
    project(args, d, gates);
    for (std::int64_t step = 0; step < sizes_.steps; ++step) {
      const std::int64_t time = order.time(step);
      CellStep<T> s = step_of(args, d, time, gates);
      s.h = h + order.before(time) * state;
      s.next_h = h + order.after(time) * state;
      s.c = c == nullptr ? nullptr : c + order.before(time) * state;
      s.next_c = c == nullptr ? nullptr : c + order.after(time) * state;
      run_stages(args, d, s);
    }
    const std::int64_t last = order.last_state() * state;
    store_state(device_, sizes_, d, h + last, args.output<T>(kYh));
    if (c != nullptr) store_state(device_, sizes_, d, c + last, args.output<T>(kYc));
  }

  /// Fills the gates with the input's part of each.
  void project(const KernelArgs& args, std::int64_t d, T* gates) const {
    const T* const w = args.input<T>(kW) + d * gate_columns() * sizes_.input;
    start_tiles<T>(RowsProduct<T>{sizes_.rows(), gate_columns(), sizes_.input, args.input<T>(kX),
                                  sizes_.input, false, w, sizes_.input, true, gates, row()},
                   1, device_.stream());
  }

  CellStep<T> step_of(const KernelArgs& args, std::int64_t d, std::int64_t time, T* gates) const {
    const std::int64_t n = sizes_.hidden;
    const T* const bias = args.input<T>(kB);
    const T* const peepholes = args.input<T>(kP);
    T* const y = args.output<T>(kY);
    CellStep<T> s{};
    s.batch = sizes_.batch;
    s.n = n;
    s.gates = settings_.gates();
    s.slot_count = settings_.slots();
    s.couples_forget = settings_.couples_forget;
    s.bias = bias == nullptr ? nullptr : bias + d * 2 * gate_columns();
    s.peepholes = peepholes == nullptr ? nullptr : peepholes + d * 3 * n;
    s.lengths = args.input<std::int32_t>(kLengths);
    s.time = time;
    s.slots = gates + time * sizes_.batch * row();
    s.reset_h = workspace_at<T>(args, reset_);
    s.y = y == nullptr ? nullptr : y + sizes_.y_at(time, 0, d);
    return s;
  }

  void run_stages(const KernelArgs& args, std::int64_t d, const CellStep<T>& s) const {
    switch (settings_.kind) {
      case RecurrentKind::lstm:
        return run_stage<Cell::lstm>(args, d, s, s.h, 0, 4, true);
      case RecurrentKind::rnn:
        return run_stage<Cell::rnn>(args, d, s, s.h, 0, 1, true);
      case RecurrentKind::gru:
        if (settings_.linear_before_reset) {
          return run_stage<Cell::linear_gru>(args, d, s, s.h, 0, 3, true);
        }
        run_stage<Cell::gru_gates>(args, d, s, s.h, 0, 2, false);
        return run_stage<Cell::gru_candidate>(args, d, s, s.reset_h, 2, 1, true);
    }
  }

  /// Gates [first, first + count) from the product of `state` with their part of R.
  template <Cell cell>
  void run_stage(const KernelArgs& args, std::int64_t d, CellStep<T> s, const T* state,
                 std::int64_t first, std::int64_t count, bool is_last) const {
    const std::int64_t n = sizes_.hidden;
    T* const product = workspace_at<T>(args, recurrent_);
    const T* const r = args.input<T>(kR) + (d * gate_columns() + first * n) * n;
    start_tiles<T>(
        RowsProduct<T>{sizes_.batch, count * n, n, state, n, false, r, n, true, product, count * n},
        1, device_.stream());
    s.recurrent = product;
    s.columns = count * n;
    if (!is_last) s.y = nullptr;
    start_items(RunCell<T, cell>{s}, sizes_.state(), device_.stream());
  }

  RecurrentSettings settings_;
  RecurrentSizes sizes_;
  bool keeps_;  ///< the training form
  CudaDevice& device_;
  std::size_t recurrent_ = 0;
  std::size_t reset_ = 0;
  std::size_t gates_ = 0;
  std::size_t states_ = 0;
};

}  // namespace

void register_recurrent_cuda(KernelRegistry& registry) {
  register_recurrent_kernels(registry, "tiles", recurrent_kernel_cuda<Forward>,
                             make_recurrent_grad_cuda, DeviceKind::cuda);
}

}  // namespace graft
