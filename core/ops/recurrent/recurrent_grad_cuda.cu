// The gradients of LSTM, GRU and RNN: from the last step to the first the point-wise gradient of
// the cell, then its product with R; the gradients of X, W, R, B and P are then products and sums
// over all steps at once. The formulas are those of recurrent_cell.h and recurrent_gru.h.
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/recurrent/recurrent_cuda.h"

namespace graft {
namespace {

/// In the order in which gradients are made: of a GRU the candidate's first.
enum class Cell { lstm, rnn, gru_candidate, gru_reset, linear_gru };

/// One pass of one step, of all samples; pointers where the rows of the step start.
template <class T>
struct CellStep {
  std::int64_t n;  ///< hidden
  std::int64_t gates;
  std::int64_t slot_count;
  bool couples_forget;
  const T* peepholes;  ///< [3 * n], or null
  const std::int32_t* lengths;
  std::int64_t time;
  const T* slots;
  const T* h;
  const T* c;
  const T* next_c;
  const T* dy;     ///< of this step; null where there is none
  const T* carry;  ///< what the product of the step behind gave to h
  T* dh;
  T* dc;
  T* input;      ///< out: the gradients of the gates
  T* recurrent;  ///< out: as the recurrent product gave them; maybe `input`
  T* reset_h;
  const T* reset_dh;
};

template <class T, Cell cell>
struct RunCell {
  CellStep<T> s;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t b = i / s.n;
    const std::int64_t j = i % s.n;
    const bool is_active = s.lengths == nullptr || s.time < s.lengths[b];
    T* const input = s.input + b * s.gates * s.n + j;
    T* const recurrent = s.recurrent + b * s.gates * s.n + j;
    if constexpr (cell != Cell::gru_reset) {
      s.dh[i] += s.carry[i];
      if (is_active && s.dy != nullptr) s.dh[i] += s.dy[i];
    }
    if (is_active) {
      step(i, j, s.slots + b * s.slot_count * s.n + j, input, recurrent);
      return;
    }
    for (std::int64_t gate = 0; gate < s.gates; ++gate) {
      input[gate * s.n] = T{0};
      recurrent[gate * s.n] = T{0};
    }
    if (s.reset_h != nullptr) s.reset_h[i] = T{0};
  }

 private:
  __device__ T peephole(std::int64_t gate, std::int64_t j) const {
    return s.peepholes == nullptr ? T{0} : s.peepholes[gate * s.n + j];
  }
  __device__ static T of_sigmoid(T y) { return y * (T{1} - y); }
  __device__ static T of_tanh(T y) { return T{1} - y * y; }

  __device__ void step(std::int64_t i, std::int64_t j, const T* slots, T* input,
                       T* recurrent) const {
    const std::int64_t n = s.n;
    const T dh = s.dh[i];
    if constexpr (cell == Cell::lstm) {
      lstm(i, j, slots, input);
    } else if constexpr (cell == Cell::rnn) {
      input[0] = dh * of_tanh(slots[0]);
      s.dh[i] = T{0};
    } else if constexpr (cell == Cell::gru_candidate) {
      const T z = slots[0];
      const T candidate = slots[2 * n];
      input[0] = dh * (s.h[i] - candidate) * of_sigmoid(z);
      input[2 * n] = dh * (T{1} - z) * of_tanh(candidate);
      s.dh[i] = dh * z;
    } else if constexpr (cell == Cell::gru_reset) {
      const T reset = slots[n];
      input[n] = s.reset_dh[i] * s.h[i] * of_sigmoid(reset);
      s.reset_h[i] = reset * s.h[i];
      s.dh[i] = dh + s.reset_dh[i] * reset;
    } else {
      const T z = slots[0];
      const T reset = slots[n];
      const T candidate = slots[2 * n];
      const T dcandidate = dh * (T{1} - z) * of_tanh(candidate);
      input[0] = dh * (s.h[i] - candidate) * of_sigmoid(z);
      input[n] = dcandidate * slots[3 * n] * of_sigmoid(reset);
      input[2 * n] = dcandidate;
      recurrent[0] = input[0];
      recurrent[n] = input[n];
      recurrent[2 * n] = dcandidate * reset;
      s.dh[i] = dh * z;
    }
  }

  __device__ void lstm(std::int64_t i, std::int64_t j, const T* slots, T* gradients) const {
    const std::int64_t n = s.n;
    const T input = slots[0];
    const T output = slots[n];
    const T forget = slots[2 * n];
    const T fresh = slots[3 * n];
    const T c = s.c[i];
    const T squashed = device_math::tanh(s.next_c[i]);
    const T doutput = s.dh[i] * squashed * of_sigmoid(output);
    const T dc = s.dc[i] + s.dh[i] * output * of_tanh(squashed) + doutput * peephole(1, j);
    const T keep = s.couples_forget ? T{1} - input : forget;
    const T dinput = dc * (s.couples_forget ? fresh - c : fresh) * of_sigmoid(input);
    const T dforget = s.couples_forget ? T{0} : dc * c * of_sigmoid(forget);
    s.dc[i] = dc * keep + dinput * peephole(0, j) + dforget * peephole(2, j);
    s.dh[i] = T{0};
    gradients[0] = dinput;
    gradients[n] = doutput;
    gradients[2 * n] = dforget;
    gradients[3 * n] = dc * input * of_tanh(fresh);
  }
};

/// out[j] = sum over rows of a (times b); rows of a and b lie `lda` and `ldb` apart.
template <class T>
struct SumColumns {
  const T* a;
  std::int64_t lda;
  const T* b;  ///< may be null
  std::int64_t ldb;
  std::int64_t rows;
  T* out;
  __device__ void operator()(std::int64_t j) const {
    double sum = 0.0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const T factor = b == nullptr ? T{1} : b[i * ldb + j];
      sum += static_cast<double>(a[i * lda + j] * factor);
    }
    out[j] = static_cast<T>(sum);
  }
};

template <class T>
struct AddTo {
  const T* x;
  T* y;
  __device__ void operator()(std::int64_t i) const { y[i] += x[i]; }
};

template <class T>
class Backward {
 public:
  explicit Backward(KernelRequest& request)
      : settings_(request.node()),
        sizes_(request, settings_, kGradX, kGradR),
        splits_(settings_.slots() > settings_.gates()),
        has_stages_(settings_.kind == RecurrentKind::gru && !splits_),
        device_(as_cuda(request.device())) {
    WorkspaceLayout layout;
    dgates_ = layout.reserve<T>(sizes_.rows() * gate_columns());
    drecurrent_ = splits_ ? layout.reserve<T>(sizes_.rows() * gate_columns()) : dgates_;
    reset_h_ = layout.reserve<T>(has_stages_ ? sizes_.rows() * sizes_.hidden : 0);
    for (std::size_t* state : {&carry_, &dh_, &dc_, &reset_dh_}) {
      *state = layout.reserve<T>(sizes_.state());
    }
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    for (std::int64_t d = 0; d < sizes_.directions; ++d) run(args, d);
  }

 private:
  std::int64_t gate_columns() const { return settings_.gates() * sizes_.hidden; }
  /// State 0 (h) or 1 (c) of a direction, before the first or at a later index.
  const T* state(const KernelArgs& args, std::int64_t d, std::int64_t which,
                 std::int64_t index) const {
    const std::int64_t of_state = (sizes_.steps + 1) * sizes_.state();
    return args.input<T>(kGradStates) + (d * settings_.states() + which) * of_state +
           index * sizes_.state();
  }

  void run(const KernelArgs& args, std::int64_t d) const {
    const recurrent::TimeOrder order(settings_, sizes_, d);
    T* const carry = workspace_at<T>(args, carry_);
    T* const dh = workspace_at<T>(args, dh_);
    T* const dc = workspace_at<T>(args, dc_);
    load_state<T>(device_, sizes_, d, nullptr, carry);
    load_state(device_, sizes_, d, args.input<T>(kGradYh), dh);
    load_state(device_, sizes_, d, args.input<T>(kGradYc), dc);
    for (std::int64_t step = sizes_.steps; step-- > 0;) {
      run_passes(args, d, step_of(args, d, order, order.time(step)));
    }
    start_items(AddTo<T>{carry, dh}, sizes_.state(), device_.stream());
    store_state(device_, sizes_, d, dh, args.output<T>(kDinitialH));
    store_state(device_, sizes_, d, dc, args.output<T>(kDinitialC));
    write_products(args, d, order);
    write_sums(args, d, order);
  }

  CellStep<T> step_of(const KernelArgs& args, std::int64_t d, const recurrent::TimeOrder& order,
                      std::int64_t time) const {
    const std::int64_t first = time * sizes_.batch;
    const std::int64_t row = settings_.slots() * sizes_.hidden;
    const T* const dy = args.input<T>(kGradY);
    const T* const peepholes = args.input<T>(kGradP);
    const bool has_c = settings_.states() > 1;
    CellStep<T> s{};
    s.n = sizes_.hidden;
    s.gates = settings_.gates();
    s.slot_count = settings_.slots();
    s.couples_forget = settings_.couples_forget;
    s.peepholes = peepholes == nullptr ? nullptr : peepholes + d * 3 * sizes_.hidden;
    s.lengths = args.input<std::int32_t>(kGradLengths);
    s.time = time;
    s.slots = args.input<T>(kGradGates) + (d * sizes_.rows() + first) * row;
    s.h = state(args, d, 0, order.before(time));
    s.c = has_c ? state(args, d, 1, order.before(time)) : nullptr;
    s.next_c = has_c ? state(args, d, 1, order.after(time)) : nullptr;
    s.dy = dy == nullptr ? nullptr : dy + sizes_.y_at(time, 0, d);
    s.carry = workspace_at<T>(args, carry_);
    s.dh = workspace_at<T>(args, dh_);
    s.dc = workspace_at<T>(args, dc_);
    s.input = workspace_at<T>(args, dgates_) + first * gate_columns();
    s.recurrent = workspace_at<T>(args, drecurrent_) + first * gate_columns();
    s.reset_h = has_stages_ ? workspace_at<T>(args, reset_h_) + first * sizes_.hidden : nullptr;
    s.reset_dh = workspace_at<T>(args, reset_dh_);
    return s;
  }

  void run_passes(const KernelArgs& args, std::int64_t d, const CellStep<T>& s) const {
    T* const carry = workspace_at<T>(args, carry_);
    switch (settings_.kind) {
      case RecurrentKind::lstm:
        return run_pass<Cell::lstm>(args, d, s, 0, 4, carry);
      case RecurrentKind::rnn:
        return run_pass<Cell::rnn>(args, d, s, 0, 1, carry);
      case RecurrentKind::gru:
        if (splits_) return run_pass<Cell::linear_gru>(args, d, s, 0, 3, carry);
        run_pass<Cell::gru_candidate>(args, d, s, 2, 1, workspace_at<T>(args, reset_dh_));
        return run_pass<Cell::gru_reset>(args, d, s, 0, 2, carry);
    }
  }

  /// The cell, then the product of the gradients of gates [first, first + count) with their part of
  /// R.
  template <Cell cell>
  void run_pass(const KernelArgs& args, std::int64_t d, const CellStep<T>& s, std::int64_t first,
                std::int64_t count, T* to) const {
    const std::int64_t n = sizes_.hidden;
    start_items(RunCell<T, cell>{s}, sizes_.state(), device_.stream());
    const T* const r = args.input<T>(kGradR) + (d * gate_columns() + first * n) * n;
    start_tiles<T>(RowsProduct<T>{sizes_.batch, n, count * n, s.recurrent + first * n,
                                  gate_columns(), false, r, n, false, to, n},
                   1, device_.stream());
  }

  void write_products(const KernelArgs& args, std::int64_t d,
                      const recurrent::TimeOrder& order) const {
    const std::int64_t rows = sizes_.rows();
    const std::int64_t columns = gate_columns();
    const T* const dgates = workspace_at<T>(args, dgates_);
    const std::int64_t w_at = d * columns * sizes_.input;
    if (T* const dx = args.output<T>(kDx)) {
      start_tiles<T>(RowsProduct<T>{rows, sizes_.input, columns, dgates, columns, false,
                                    args.input<T>(kGradW) + w_at, sizes_.input, false, dx,
                                    sizes_.input, d > 0},
                     1, device_.stream());
    }
    if (T* const dw = args.output<T>(kDw)) {
      start_tiles<T>(
          RowsProduct<T>{columns, sizes_.input, rows, dgates, columns, true, args.input<T>(kGradX),
                         sizes_.input, false, dw + w_at, sizes_.input},
          1, device_.stream());
    }
    const T* const before = state(args, d, 0, order.before(0));
    if (has_stages_) {
      write_dr(args, d, 0, 2, before);
      write_dr(args, d, 2, 1, workspace_at<T>(args, reset_h_));
    } else {
      write_dr(args, d, 0, settings_.gates(), before);
    }
  }

  void write_dr(const KernelArgs& args, std::int64_t d, std::int64_t first, std::int64_t count,
                const T* before) const {
    T* const dr = args.output<T>(kDr);
    if (dr == nullptr) return;
    const std::int64_t n = sizes_.hidden;
    const std::int64_t columns = gate_columns();
    start_tiles<T>(
        RowsProduct<T>{count * n, n, sizes_.rows(), workspace_at<T>(args, drecurrent_) + first * n,
                       columns, true, before, n, false, dr + (d * columns + first * n) * n, n},
        1, device_.stream());
  }

  /// Biases; and peepholes, of which i and f look at c before the step, o at c after it.
  void write_sums(const KernelArgs& args, std::int64_t d, const recurrent::TimeOrder& order) const {
    const std::int64_t rows = sizes_.rows();
    const std::int64_t columns = gate_columns();
    const std::int64_t n = sizes_.hidden;
    const T* const dgates = workspace_at<T>(args, dgates_);
    if (T* const db = args.output<T>(kDb)) {
      const auto sum = [&](const T* from, T* to) {
        start_items(SumColumns<T>{from, columns, nullptr, 0, rows, to}, columns, device_.stream());
      };
      sum(dgates, db + 2 * d * columns);
      sum(workspace_at<T>(args, drecurrent_), db + (2 * d + 1) * columns);
    }
    T* const dp = args.output<T>(kDp);
    for (std::int64_t gate = 0; dp != nullptr && gate < 3; ++gate) {
      const T* const c = state(args, d, 1, gate == 1 ? order.after(0) : order.before(0));
      start_items(SumColumns<T>{dgates + gate * n, columns, c, n, rows, dp + (d * 3 + gate) * n}, n,
                  device_.stream());
    }
  }

  RecurrentSettings settings_;
  RecurrentSizes sizes_;
  bool splits_;      ///< the recurrent product gives more than the input's: linear_before_reset
  bool has_stages_;  ///< two products a step
  CudaDevice& device_;
  std::size_t dgates_ = 0;
  std::size_t drecurrent_ = 0;
  std::size_t reset_h_ = 0;
  std::size_t carry_ = 0;
  std::size_t dh_ = 0;
  std::size_t dc_ = 0;
  std::size_t reset_dh_ = 0;
};

}  // namespace

Kernel make_recurrent_grad_cuda(KernelRequest& request) {
  return recurrent_kernel_cuda<Backward>(request);
}

}  // namespace graft
