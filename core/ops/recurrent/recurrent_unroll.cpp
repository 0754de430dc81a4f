// Recurrent layers time by time. `Cell` has the formulas of the kinds, in recurrent_cell.h and
// recurrent_gru.h as loops; `Direction` carries states through the times, `unroll_recurrent` puts
// directions together.
#include <cmath>

#include "core/ops/recurrent/recurrent.h"
#include "core/ops/unroll_recurrent.h"

namespace graft {
namespace {

using Exprs = std::vector<Expr>;
using Function = RecurrentActivation::Function;

/// Parts of that size each along an axis.
Exprs split(const Expr& x, std::int64_t axis, std::int64_t count) {
  if (count == 1) return {x};
  const std::int64_t size = x.shape()[static_cast<int>(axis)] / count;
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), size);
  return call_multi("Split", "", {x, constant_ints(x.builder(), sizes)}, static_cast<int>(count),
                    {{"axis", axis}});
}

Expr concat(const Exprs& parts, std::int64_t axis) {
  return parts.size() == 1 ? parts.front() : call("Concat", parts, {{"axis", axis}});
}

Expr without_first_axis(const Expr& x) {
  const Shape shape = x.shape();
  return reshape(x, Shape(std::vector<std::int64_t>(shape.dims().begin() + 1, shape.dims().end())));
}

Expr activated(const RecurrentActivation& activation, const Expr& x) {
  const auto alpha = static_cast<float>(activation.alpha);
  const auto beta = static_cast<float>(activation.beta);
  switch (activation.function) {
    case Function::sigmoid:
      return sigmoid(x);
    case Function::tanh:
      return tanh(x);
    case Function::relu:
      return call("Relu", {x});
    case Function::affine:
      return x * activation.alpha + activation.beta;
    case Function::leaky_relu:
      return call("LeakyRelu", {x}, {{"alpha", alpha}});
    case Function::thresholded_relu:
      return call("ThresholdedRelu", {x}, {{"alpha", alpha}});
    case Function::scaled_tanh:
      return tanh(x * activation.beta) * activation.alpha;
    case Function::hard_sigmoid:
      return call("HardSigmoid", {x}, {{"alpha", alpha}, {"beta", beta}});
    case Function::elu:
      return call("Elu", {x}, {{"alpha", alpha}});
    case Function::softsign:
      return call("Softsign", {x});
    case Function::softplus:
      return call("Softplus", {x});
  }
  return {};
}

/// The states between two times, [batch, hidden] each; c is LSTM's.
struct State {
  Expr h;
  Expr c;
};

/// One direction's weights and formulas.
class Cell {
 public:
  /// `r`, `b`, `p`: of this direction, without that axis; `b` and `p` may be empty.
  Cell(const RecurrentSettings& settings, std::int64_t direction, const Expr& r, const Expr& b,
       const Expr& p)
      : settings_(settings),
        first_(static_cast<std::size_t>(3 * direction)),
        gates_(settings.gates()),
        recurrent_(transpose(r, {1, 0})) {
    if (b) {
      const Exprs halves = split(b, 0, 2);
      bias_ = halves[0];
      recurrent_bias_ = halves[1];
    }
    if (p) peepholes_ = split(p, 0, 3);
    if (settings.kind == RecurrentKind::gru) {
      by_gate_ = split(recurrent_, 1, gates_);
      bias_by_gate_ = recurrent_bias_ ? split(recurrent_bias_, 0, gates_) : Exprs(3);
    }
  }

  /// What the input adds to the gates, at all times.
  Expr of_input(const Expr& x, const Expr& w) const {
    const Expr product = matmul(x, transpose(w, {1, 0}));
    return bias_ ? product + bias_ : product;
  }

  /// `x`: the input's part of the gates, [batch, gates * hidden].
  State next(const Expr& x, const State& before) const {
    switch (settings_.kind) {
      case RecurrentKind::lstm:
        return lstm(split(x + of_state(before.h), 1, gates_), before);
      case RecurrentKind::gru:
        return {gru(split(x, 1, gates_), before.h), {}};
      case RecurrentKind::rnn:
        return {f(x + of_state(before.h)), {}};
    }
    return {};
  }

 private:
  Expr of_state(const Expr& h) const {
    const Expr product = matmul(h, recurrent_);
    return recurrent_bias_ ? product + recurrent_bias_ : product;
  }

  Expr limited(std::size_t which, const Expr& x) const {
    const RecurrentActivation& activation = settings_.activations.at(first_ + which);
    if (std::isinf(settings_.clip)) return activated(activation, x);
    const Expr least = constant_like(x, -settings_.clip);
    return activated(activation, call("Clip", {x, least, constant_like(x, settings_.clip)}));
  }
  Expr f(const Expr& x) const { return limited(0, x); }
  Expr g(const Expr& x) const { return limited(1, x); }

  Expr peeped(const Expr& sum, std::size_t gate, const Expr& c) const {
    return peepholes_.empty() ? sum : sum + peepholes_[gate] * c;
  }

  /// Gates i, o, f, c.
  State lstm(const Exprs& sums, const State& before) const {
    const Expr input = f(peeped(sums[0], 0, before.c));
    const Expr keep = settings_.couples_forget ? 1.0 - input : f(peeped(sums[2], 2, before.c));
    const Expr c = keep * before.c + input * g(sums[3]);
    return {f(peeped(sums[1], 1, c)) * activated(settings_.activations.at(first_ + 2), c), c};
  }

  /// Gates z, r, h.
  Expr gru(const Exprs& x, const Expr& h) const {
    const auto product = [&](const Expr& state, std::size_t gate) {
      const Expr result = matmul(state, by_gate_[gate]);
      return bias_by_gate_[gate] ? result + bias_by_gate_[gate] : result;
    };
    const Expr update = f(x[0] + product(h, 0));
    const Expr reset = f(x[1] + product(h, 1));
    const Expr memory =
        settings_.linear_before_reset ? reset * product(h, 2) : product(reset * h, 2);
    return (1.0 - update) * g(x[2] + memory) + update * h;
  }

  const RecurrentSettings& settings_;
  std::size_t first_;  // of its activations
  std::int64_t gates_;
  Expr recurrent_;  // [hidden, gates * hidden]
  Expr bias_;       // of the input's part, or empty
  Expr recurrent_bias_;
  Exprs peepholes_;     // i, o, f
  Exprs by_gate_;       // of GRU: the columns of recurrent_
  Exprs bias_by_gate_;  // and of its bias
};

/// Where a sequence has ended, states stay and outputs are 0.
class Lengths {
 public:
  explicit Lengths(const Expr& lengths) {
    if (lengths) lengths_ = unsqueeze(lengths, {1});
  }
  bool are_equal() const { return !lengths_; }
  Expr runs(std::int64_t time) const {
    return greater(lengths_, constant_like(lengths_, static_cast<double>(time)));
  }

 private:
  Expr lengths_;  // [batch, 1], or empty
};

/// Goes through the times; `ys` gets h after each, [1, batch, hidden], in the order of time.
State run(const Cell& cell, const Exprs& inputs, State state, const Lengths& lengths,
          bool is_reversed, Exprs& ys) {
  const std::size_t steps = inputs.size();
  ys.resize(steps);
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t time = is_reversed ? steps - 1 - step : step;
    const Expr x = without_first_axis(inputs[time]);
    State next = cell.next(x, state);
    Expr y = next.h;
    if (!lengths.are_equal()) {
      const Expr runs = lengths.runs(static_cast<std::int64_t>(time));
      y = where(runs, next.h, constant_like(next.h, 0.0));
      next.h = where(runs, next.h, state.h);
      if (next.c) next.c = where(runs, next.c, state.c);
    }
    ys[time] = unsqueeze(y, {0});
    state = next;
  }
  return state;
}

/// The parts of an input by direction, without that axis; empty ones where it is left out.
Exprs by_direction(const Expr& x, std::int64_t directions) {
  if (!x) return Exprs(static_cast<std::size_t>(directions));
  Exprs parts = split(x, 0, directions);
  for (Expr& part : parts) part = without_first_axis(part);
  return parts;
}

}  // namespace

bool is_recurrent(const Node& node) {
  return node.is("LSTM") || node.is("GRU") || node.is("RNN");
}

std::vector<Expr> unroll_recurrent(const Node& node, Builder& builder) {
  const RecurrentSettings settings(node);
  const bool is_lstm = settings.kind == RecurrentKind::lstm;
  const auto given = [&](int index) {
    return node.input(index) == nullptr ? Expr() : builder.expr(node.input(index));
  };
  const auto state_input = [&](int index) {
    const Expr state = given(index);
    return state && settings.batch_first ? transpose(state, {1, 0, 2}) : state;
  };
  const Expr x = settings.batch_first ? transpose(given(kX), {1, 0, 2}) : given(kX);
  const std::int64_t steps = x.shape()[0];
  const Exprs w = by_direction(given(kW), settings.directions);
  const Exprs r = by_direction(given(kR), settings.directions);
  const Exprs b = by_direction(given(kB), settings.directions);
  const Exprs p = by_direction(is_lstm ? given(kP) : Expr(), settings.directions);
  const Exprs h = by_direction(state_input(kInitialH), settings.directions);
  const Exprs c = by_direction(is_lstm ? state_input(kInitialC) : Expr(), settings.directions);
  const Lengths lengths(given(kLengths));
  const Expr zeros = expand(constant_like(x, 0.0), {x.shape()[1], r[0].shape()[1]});
  Exprs all_y;
  Exprs last_h;
  Exprs last_c;
  for (std::int64_t d = 0; d < settings.directions; ++d) {
    const auto at = static_cast<std::size_t>(d);
    const Cell cell(settings, d, r[at], b[at], p[at]);
    const State first{h[at] ? h[at] : zeros, is_lstm ? (c[at] ? c[at] : zeros) : Expr()};
    Exprs ys{expand(zeros, {0, zeros.shape()[0], zeros.shape()[1]})};
    State last = first;
    if (steps > 0) {
      last = run(cell, split(cell.of_input(x, w[at]), 0, steps), first, lengths,
                 d == 1 || settings.starts_reversed, ys);
    }
    all_y.push_back(unsqueeze(concat(ys, 0), {1}));
    last_h.push_back(unsqueeze(last.h, {0}));
    if (is_lstm) last_c.push_back(unsqueeze(last.c, {0}));
  }
  const auto state_output = [&](const Exprs& parts) {
    return settings.batch_first ? transpose(concat(parts, 0), {1, 0, 2}) : concat(parts, 0);
  };
  const Expr y = concat(all_y, 1);
  Exprs outputs{settings.batch_first ? transpose(y, {2, 0, 1, 3}) : y, state_output(last_h)};
  if (is_lstm) outputs.push_back(state_output(last_c));
  return outputs;
}

}  // namespace graft
