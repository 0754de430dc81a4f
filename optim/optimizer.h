#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/ops/builder.h"

namespace graft {

// Plain settings with PyTorch's names, defaults and formulas (torch.optim). To add an optimizer: an
// update op (core/ops/update.cpp), a struct here, a row in optimizer.cpp.

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

using Optimizer = std::variant<SGD, Adam, AdamW, RMSprop, Adagrad>;

/// "sgd", "adam", "adamw", "rmsprop", "adagrad".
std::vector<std::string> optimizer_names();
/// With its default settings. Throws Error{argument} for an unknown name, listing the valid ones.
Optimizer optimizer_from_name(std::string_view name);
std::string_view name(const Optimizer& optimizer);

float learning_rate(const Optimizer& optimizer);
void set_learning_rate(Optimizer& optimizer, float lr);
/// Throws Error{argument} if the optimizer has no such setting.
void set_momentum(Optimizer& optimizer, float momentum);
void set_weight_decay(Optimizer& optimizer, float weight_decay);

/// Throws Error{argument} naming the setting that makes no sense (a negative rate, beta outside
/// [0,1), Nesterov without momentum).
void check(const Optimizer& optimizer);

/// How optimizer state is stored: like its parameter, or in bf16, half the bytes of f32, rounded
/// stochastically. Updates compute in the parameter's type either way.
enum class StatePrecision { f32, bf16 };

/// Throws Error{unsupported} if the optimizer's state cannot be stored so: centered RMSprop takes
/// the difference of two averages, for which bf16 has too few digits.
void check(const Optimizer& optimizer, StatePrecision precision);

/// A parameter and what flowed into it.
struct ParameterGradient {
  Value* parameter;
  Expr gradient;
};

/// Scalars that change each step, shared by all updates.
struct UpdateInputs {
  Expr lr;    ///< f32
  Expr step;  ///< i64, 1 in the first update
};

/// An update node's values.
struct AddedUpdate {
  Value* parameter;           ///< the new content
  std::vector<Value*> state;  ///< before the update, in a fixed order
};

/// Adds one update node for the parameter and its state: zero-filled variables named
/// "<parameter>.momentum", "<parameter>.mean", ... Throws Error{type} if bf16 state is wanted for a
/// parameter that is not f32.
AddedUpdate add_update(Builder& builder, const Optimizer& optimizer, const ParameterGradient& pair,
                       const UpdateInputs& inputs, StatePrecision state = StatePrecision::f32);

}  // namespace graft
