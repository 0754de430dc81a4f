#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/kernels/product.h"
#include "core/ops/sample.h"

namespace graft {

class KernelRegistry;

enum class RecurrentKind { lstm, gru, rnn };

/// Of LSTM, GRU, RNN and their training and gradient forms.
RecurrentKind recurrent_kind(const Node& node);

/// An activation function with its parameters, as the attributes list them.
struct RecurrentActivation {
  enum class Function {
    sigmoid,
    tanh,
    relu,
    affine,
    leaky_relu,
    thresholded_relu,
    scaled_tanh,
    hard_sigmoid,
    elu,
    softsign,
    softplus,
  };
  Function function;
  double alpha = 0.0;
  double beta = 0.0;
};

/// What the attributes of a node say, checked.
struct RecurrentSettings {
  /// Throws Error{model} or Error{argument} naming the node if an attribute cannot be.
  explicit RecurrentSettings(const Node& node);

  RecurrentKind kind;
  std::int64_t directions;
  /// Direction 0 runs backwards in time; direction 1 always does.
  bool starts_reversed;
  /// layout = 1: the batch stands before the time.
  bool batch_first;
  bool couples_forget;       ///< LSTM, input_forget: the forget gate is 1 - input gate
  bool linear_before_reset;  ///< GRU
  /// Inputs of the gates' activations are limited to [-clip, clip]; infinity without.
  double clip;
  /// Functions f, g, h of direction d start at 3 * d. RNN has f alone, GRU f and g.
  std::array<RecurrentActivation, 6> activations;
  /// Sigmoid and Tanh at the default places and no clip: fast loops serve.
  bool is_default;

  /// Gates computed from the input: rows of W are gates * hidden.
  std::int64_t gates() const;
  /// Numbers kept of each hidden element and step: the gates, and for a GRU with
  /// linear_before_reset the recurrent part of its hidden gate.
  std::int64_t slots() const;
  /// 2 for LSTM (h, c), else 1.
  std::int64_t states() const { return kind == RecurrentKind::lstm ? 2 : 1; }
  /// Outputs of the training form.
  int gates_output() const { return kind == RecurrentKind::lstm ? 3 : 2; }
  int states_output() const { return gates_output() + 1; }
};

/// Sizes of one call, and where rows lie.
struct RecurrentSizes {
  /// `x`, `r`: indices of the inputs.
  RecurrentSizes(const KernelRequest& request, const RecurrentSettings& settings, int x, int r);

  std::int64_t steps;
  std::int64_t batch;
  std::int64_t input;
  std::int64_t hidden;
  std::int64_t directions;
  bool batch_first;

  std::int64_t rows() const { return steps * batch; }
  /// Elements of a state of one direction.
  std::int64_t state() const { return batch * hidden; }
  /// Where Y's row of a time, sample and direction starts.
  std::int64_t y_at(std::int64_t time, std::int64_t sample, std::int64_t direction) const {
    const std::int64_t row = batch_first ? (sample * steps + time) * directions + direction
                                         : (time * directions + direction) * batch + sample;
    return row * hidden;
  }
  /// The same in initial and last states.
  std::int64_t state_at(std::int64_t sample, std::int64_t direction) const {
    return (batch_first ? sample * directions + direction : direction * batch + sample) * hidden;
  }
  /// Samples worth a thread.
  std::int64_t grain() const { return 2048 / (hidden + 1) + 1; }
};

namespace recurrent {

/// The order in which a direction takes the times, and which of the steps + 1 states between them
/// stand before and after each.
struct TimeOrder {
  bool is_reversed;
  std::int64_t steps;

  TimeOrder(const RecurrentSettings& settings, const RecurrentSizes& sizes, std::int64_t direction)
      : is_reversed(direction == 1 || settings.starts_reversed), steps(sizes.steps) {}
  std::int64_t time(std::int64_t step) const { return is_reversed ? steps - 1 - step : step; }
  std::int64_t before(std::int64_t time) const { return is_reversed ? time + 1 : time; }
  std::int64_t after(std::int64_t time) const { return is_reversed ? time : time + 1; }
  std::int64_t first_state() const { return is_reversed ? steps : 0; }
  std::int64_t last_state() const { return is_reversed ? 0 : steps; }
};

}  // namespace recurrent

/// Kernels of the forward op, its training form and its gradient on these products.
template <class T>
Kernel make_recurrent(KernelRequest& request, MakeProduct<T> make_product);
template <class T>
Kernel make_recurrent_grad(KernelRequest& request, MakeProduct<T> make_product);

/// What the sweep tests.
std::vector<Sample> recurrent_samples(RecurrentKind kind);
std::vector<Sample> recurrent_training_samples(RecurrentKind kind);
std::vector<Sample> recurrent_grad_samples(RecurrentKind kind);

/// Registers a kernel for the forward ops and their training forms, and one for the gradients.
void register_recurrent_kernels(KernelRegistry& registry, std::string_view name,
                                KernelFactory forward, KernelFactory backward,
                                DeviceKind device = DeviceKind::cpu);

/// Outputs of the forward ops. The training form has two more, after those that its kind has:
/// gates [directions, steps * batch, slots * hidden]: by time, activated gates where `is_default`,
/// else what the activations are applied to;
/// states [directions, states, steps + 1, batch, hidden]: by time, those between the steps.
enum RecurrentOutput { kY, kYh, kYc };
/// Inputs of the forward ops.
enum RecurrentInput { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kP };
/// Inputs of the gradient op; its outputs are the gradients of X, W, R, B, initial_h, initial_c, P
/// (each may be left out; those of initial_c and P are LSTM's).
enum RecurrentGradInput {
  kGradX,
  kGradW,
  kGradR,
  kGradLengths,
  kGradP,
  kGradGates,
  kGradStates,
  kGradY,
  kGradYh,
  kGradYc,
};
enum RecurrentGradOutput { kDx, kDw, kDr, kDb, kDinitialH, kDinitialC, kDp };

}  // namespace graft
