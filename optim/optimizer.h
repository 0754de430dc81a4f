#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace graft {

class Expr;
struct Update;

// Settings alone; optim/update.h adds the nodes. Names, defaults and formulas are PyTorch's
// (torch.optim).

struct SGD {
  float lr = 1e-3F;
  float momentum = 0.0F;
  float dampening = 0.0F;
  float weight_decay = 0.0F;
  bool nesterov = false;
};

/// Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014. Weight decay joins the
/// gradient.
struct Adam {
  float lr = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
};

/// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2017.
struct AdamW {
  float lr = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 1e-2F;
};

/// Hinton, "Neural Networks for Machine Learning", lecture 6e.
struct RMSprop {
  float lr = 1e-2F;
  float alpha = 0.99F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
  float momentum = 0.0F;
  bool centered = false;
};

/// Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.
struct Adagrad {
  float lr = 1e-2F;
  float lr_decay = 0.0F;
  float epsilon = 1e-10F;
  float weight_decay = 0.0F;
};

/// What one update makes of a parameter: adds the nodes that compute the new content of `p` and of
/// its state, and returns both (optim/update.h).
/// p, g: the parameter and its gradient, lr: the learning rate, all of p's element type; t: f64, 1
/// in the first update; lr and t are scalars. state: one tensor of p's type and shape for each name
/// of CustomOptimizer::state, zeros before the first update.
using UpdateFormula = std::function<Update(const Expr& p, const Expr& g, const Expr& lr,
                                           const Expr& t, const std::vector<Expr>& state)>;

/// An optimizer of the program's own. Gradient descent with momentum:
///
///     CustomOptimizer{.lr = 0.1F, .state = {"velocity"}, .step = [](const Expr& p, const Expr& g,
///         const Expr& lr, const Expr& t, const std::vector<Expr>& state) -> Update {
///       const Expr v = state[0] * 0.9 + g;
///       return {p - lr * v, {v}};
///     }};
///
/// `step` is called once a parameter for each plan that is made, and must depend on its arguments
/// only. What it computes is joined to chains, and written in place.
struct CustomOptimizer {
  float lr = 1e-3F;
  std::vector<std::string> state = {};
  UpdateFormula step = {};
};

using Optimizer = std::variant<SGD, Adam, AdamW, RMSprop, Adagrad, CustomOptimizer>;

/// "sgd", "adam", "adamw", "rmsprop", "adagrad".
std::vector<std::string> optimizer_names();
/// With its default settings. Throws Error{argument} for an unknown name, listing the valid ones.
Optimizer optimizer_from_name(std::string_view name);
/// Its name above; "custom" for one of the program's own.
std::string_view name(const Optimizer& optimizer);

float learning_rate(const Optimizer& optimizer);
void set_learning_rate(Optimizer& optimizer, float lr);
/// Throws Error{argument} if the optimizer has no such setting.
void set_momentum(Optimizer& optimizer, float momentum);
void set_weight_decay(Optimizer& optimizer, float weight_decay);

/// Throws Error{argument} naming the setting that makes no sense (a negative rate, beta outside
/// [0,1), Nesterov without momentum, a missing formula).
void check(const Optimizer& optimizer);

/// How optimizer state is stored: like its parameter, or in bf16, half the bytes of f32, rounded
/// stochastically. Updates compute in the parameter's type either way.
enum class StatePrecision { f32, bf16 };

/// Throws Error{unsupported} if the optimizer's state cannot be stored so: centered RMSprop takes
/// the difference of two averages, for which bf16 has too few digits, and what a formula does with
/// its state is not known.
void check(const Optimizer& optimizer, StatePrecision precision);

}  // namespace graft
