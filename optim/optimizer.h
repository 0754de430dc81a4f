#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "optim/optimizer_row.h"

namespace graft {

class Expr;
struct Update;

// Settings alone, with the row of each; optim/update.h adds the nodes. Names, defaults and formulas
// are PyTorch's (torch.optim).

struct SGD {
  float lr = 1e-3F;
  float momentum = 0.0F;
  float dampening = 0.0F;
  float weight_decay = 0.0F;
  bool nesterov = false;

  static OptimizerRow<SGD> row() {
    using Range = OptimizerSetting<SGD>::Range;
    return {.name = "sgd",
            .op = "SgdUpdate",
            .settings = {{"momentum", &SGD::momentum},
                         {"dampening", &SGD::dampening, Range::any},
                         {"weight_decay", &SGD::weight_decay},
                         {"nesterov", &SGD::nesterov}},
            .state = {{"momentum", [](const SGD& o) { return o.momentum != 0.0F; }}},
            .problem = [](const SGD& o) -> std::string_view {
              if (!o.nesterov || (o.momentum > 0.0F && o.dampening == 0.0F)) return "";
              return "nesterov is on, wanted momentum above 0 and no dampening";
            }};
  }
};

/// Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014. Weight decay joins the
/// gradient.
struct Adam {
  float lr = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;

  static OptimizerRow<Adam> row() {
    using Range = OptimizerSetting<Adam>::Range;
    return {.name = "adam",
            .op = "AdamUpdate",
            .settings = {{"beta1", &Adam::beta1, Range::share},
                         {"beta2", &Adam::beta2, Range::share},
                         {"epsilon", &Adam::epsilon},
                         {"weight_decay", &Adam::weight_decay}},
            .state = {{"mean"}, {"square"}}};
  }
};

/// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2017.
struct AdamW {
  float lr = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 1e-2F;

  static OptimizerRow<AdamW> row() {
    using Range = OptimizerSetting<AdamW>::Range;
    return {.name = "adamw",
            .op = "AdamUpdate",
            .settings = {{"beta1", &AdamW::beta1, Range::share},
                         {"beta2", &AdamW::beta2, Range::share},
                         {"epsilon", &AdamW::epsilon},
                         {"weight_decay", &AdamW::weight_decay}},
            .state = {{"mean"}, {"square"}},
            .flags = {"decoupled"}};
  }
};

/// Hinton, "Neural Networks for Machine Learning", lecture 6e.
struct RMSprop {
  float lr = 1e-2F;
  float alpha = 0.99F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
  float momentum = 0.0F;
  bool centered = false;

  static OptimizerRow<RMSprop> row() {
    using Range = OptimizerSetting<RMSprop>::Range;
    return {.name = "rmsprop",
            .op = "RmspropUpdate",
            .settings = {{"alpha", &RMSprop::alpha, Range::share},
                         {"epsilon", &RMSprop::epsilon},
                         {"momentum", &RMSprop::momentum},
                         {"weight_decay", &RMSprop::weight_decay},
                         {"centered", &RMSprop::centered}},
            .state = {{"square"},
                      {"momentum", [](const RMSprop& o) { return o.momentum != 0.0F; }},
                      {"mean", [](const RMSprop& o) { return o.centered; }}},
            .needs_f32 = [](const RMSprop& o) -> std::string_view {
              if (!o.centered) return "";
              return "centered rmsprop subtracts one average from another, for which state in bf16 "
                     "has too few digits; keep it in f32, or leave out centered";
            }};
  }
};

/// Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.
struct Adagrad {
  float lr = 1e-2F;
  float lr_decay = 0.0F;
  float epsilon = 1e-10F;
  float weight_decay = 0.0F;

  static OptimizerRow<Adagrad> row() {
    return {.name = "adagrad",
            .op = "AdagradUpdate",
            .settings = {{"lr_decay", &Adagrad::lr_decay},
                         {"epsilon", &Adagrad::epsilon},
                         {"weight_decay", &Adagrad::weight_decay}},
            .state = {{"sum"}}};
  }
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
/// only. What it computes is joined to chains, and written in place. No state may be called
/// "average", "accumulated" or "master", as what a training step keeps itself.
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

/// What it keeps for each parameter with these settings: "momentum", "mean", "square", ...
std::vector<std::string> state_names(const Optimizer& optimizer);

float learning_rate(const Optimizer& optimizer);
void set_learning_rate(Optimizer& optimizer, float lr);
/// Sets what its row calls so; a switch is on unless `value` is 0. Throws Error{argument} if the
/// optimizer has no such setting.
void set_setting(Optimizer& optimizer, std::string_view setting, float value);
void set_momentum(Optimizer& optimizer, float momentum);
void set_weight_decay(Optimizer& optimizer, float weight_decay);
/// nullopt for one that has no such setting.
std::optional<float> weight_decay(const Optimizer& optimizer);

/// Throws Error{argument} naming the setting that makes no sense (a negative rate, beta outside
/// [0,1), Nesterov without momentum, a missing formula, a name that state cannot have).
void check(const Optimizer& optimizer);

/// How optimizer state is stored: like its parameter, or in bf16, half the bytes of f32, rounded
/// stochastically. Updates compute in the parameter's type either way.
enum class StatePrecision { f32, bf16 };

/// Throws Error{unsupported} if the optimizer's state cannot be stored so: centered RMSprop takes
/// the difference of two averages, for which bf16 has too few digits, and what a formula does with
/// its state is not known.
void check(const Optimizer& optimizer, StatePrecision precision);

}  // namespace graft
