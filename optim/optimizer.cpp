#include "optim/optimizer.h"

#include <array>
#include <cmath>

namespace graft {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Optimizer>> kNames{
    "sgd", "adam", "adamw", "rmsprop", "adagrad"};

Attribute number(std::string_view attribute, float value) {
  return {attribute, AttributeValue(value)};
}

Attribute flag(std::string_view attribute, bool value) {
  return {attribute, value ? 1 : 0};
}

/// A call of the update op under construction.
class Update {
 public:
  Update(Builder& builder, const ParameterGradient& pair, const UpdateInputs& inputs,
         StatePrecision state)
      : builder_(builder), parameter_(pair.parameter), state_precision_(state) {
    const DType dtype = parameter_->dtype();
    inputs_ = {parameter_, pair.gradient.value(), cast(inputs.lr, dtype).value(),
               inputs.step.value()};
  }

  /// A state tensor of the parameter's shape, starting at zero; left out unless `wanted`.
  Update& state(std::string_view suffix, bool wanted = true) {
    if (!wanted) {
      inputs_.push_back(nullptr);
      outputs_.push_back("");
      return *this;
    }
    Graph& graph = builder_.graph();
    const std::string name = parameter_->name() + "." + std::string(suffix);
    Value* const value = graph.add_initializer(
        graph.unique_name(name), Tensor::zeros(state_type(), parameter_->known_shape()));
    value->is_variable = true;
    states_.push_back(value);
    inputs_.push_back(value);
    outputs_.push_back(graph.unique_name(name + ".new"));
    return *this;
  }
  AddedUpdate add(std::string_view op, Attributes attributes) {
    outputs_.insert(outputs_.begin(), builder_.graph().unique_name(parameter_->name() + ".new"));
    Node* const node = builder_.node(op, kInternalDomain, inputs_, outputs_, std::move(attributes));
    node->set_name("update " + parameter_->name());
    return {node->output(0), std::move(states_)};
  }

 private:
  DType state_type() const {
    if (state_precision_ == StatePrecision::f32) return parameter_->dtype();
    if (parameter_->dtype() != DType::f32) {
      fail(ErrorKind::type, "optimizer state in bf16 is for parameters of f32, '",
           parameter_->name(), "' is ", parameter_->type());
    }
    return DType::bf16;
  }

  Builder& builder_;
  Value* parameter_;
  StatePrecision state_precision_;
  std::vector<Value*> inputs_;
  std::vector<std::string> outputs_;
  std::vector<Value*> states_;
};

AddedUpdate add(Update& update, const SGD& o) {
  if (o.momentum != 0.0F) update.state("momentum");
  return update.add("SgdUpdate",
                    {number("momentum", o.momentum), number("dampening", o.dampening),
                     number("weight_decay", o.weight_decay), flag("nesterov", o.nesterov)});
}

template <class AdamLike>
AddedUpdate add_adam(Update& update, const AdamLike& o, bool decoupled) {
  update.state("mean").state("square");
  return update.add(
      "AdamUpdate",
      {number("beta1", o.beta1), number("beta2", o.beta2), number("epsilon", o.epsilon),
       number("weight_decay", o.weight_decay), flag("decoupled", decoupled)});
}

AddedUpdate add(Update& update, const Adam& o) {
  return add_adam(update, o, false);
}

AddedUpdate add(Update& update, const AdamW& o) {
  return add_adam(update, o, true);
}

AddedUpdate add(Update& update, const RMSprop& o) {
  update.state("square").state("momentum", o.momentum != 0.0F).state("mean", o.centered);
  return update.add("RmspropUpdate",
                    {number("alpha", o.alpha), number("epsilon", o.epsilon),
                     number("momentum", o.momentum), number("weight_decay", o.weight_decay)});
}

AddedUpdate add(Update& update, const Adagrad& o) {
  update.state("sum");
  return update.add("AdagradUpdate", {number("lr_decay", o.lr_decay), number("epsilon", o.epsilon),
                                      number("weight_decay", o.weight_decay)});
}

void require(bool condition, std::string_view setting, float found, std::string_view wanted) {
  if (!condition) {
    fail(ErrorKind::argument, "optimizer: ", setting, " is ", found, ", wanted ", wanted);
  }
}

void check_share(std::string_view setting, float value) {
  require(value >= 0.0F && value < 1.0F, setting, value, "a number in [0, 1)");
}

void check_amount(std::string_view setting, float value) {
  require(value >= 0.0F && std::isfinite(value), setting, value, "a finite number of at least 0");
}

void check_settings(const SGD& o) {
  check_amount("momentum", o.momentum);
  require(std::isfinite(o.dampening), "dampening", o.dampening, "a finite number");
  require(!o.nesterov || (o.momentum > 0.0F && o.dampening == 0.0F), "nesterov", o.momentum,
          "momentum above 0 and no dampening");
}

template <class AdamLike>
requires requires(AdamLike o) {
  o.beta1;
}
void check_settings(const AdamLike& o) {
  check_share("beta1", o.beta1);
  check_share("beta2", o.beta2);
  check_amount("epsilon", o.epsilon);
}

void check_settings(const RMSprop& o) {
  check_share("alpha", o.alpha);
  check_amount("momentum", o.momentum);
  check_amount("epsilon", o.epsilon);
}

void check_settings(const Adagrad& o) {
  check_amount("lr_decay", o.lr_decay);
  check_amount("epsilon", o.epsilon);
}

}  // namespace

std::vector<std::string> optimizer_names() {
  return {kNames.begin(), kNames.end()};
}

Optimizer optimizer_from_name(std::string_view wanted) {
  const std::array<Optimizer, kNames.size()> defaults{SGD{}, Adam{}, AdamW{}, RMSprop{}, Adagrad{}};
  for (const Optimizer& optimizer : defaults) {
    if (name(optimizer) == wanted) return optimizer;
  }
  std::string valid;
  for (const std::string_view known : kNames) {
    valid += (valid.empty() ? "" : ", ") + std::string(known);
  }
  fail(ErrorKind::argument, "unknown optimizer '", wanted, "'; valid: ", valid);
}

std::string_view name(const Optimizer& optimizer) {
  return kNames.at(optimizer.index());
}

float learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.lr; }, optimizer);
}

void set_learning_rate(Optimizer& optimizer, float lr) {
  std::visit([lr](auto& o) { o.lr = lr; }, optimizer);
}

void set_momentum(Optimizer& optimizer, float momentum) {
  std::visit(
      [&](auto& o) {
        if constexpr (requires { o.momentum; }) {
          o.momentum = momentum;
        } else {
          fail(ErrorKind::argument, "optimizer ", name(optimizer), " has no momentum setting");
        }
      },
      optimizer);
}

void set_weight_decay(Optimizer& optimizer, float weight_decay) {
  std::visit([=](auto& o) { o.weight_decay = weight_decay; }, optimizer);
}

void check(const Optimizer& optimizer) {
  std::visit(
      [](const auto& o) {
        check_amount("lr", o.lr);
        check_amount("weight_decay", o.weight_decay);
        check_settings(o);
      },
      optimizer);
}

void check(const Optimizer& optimizer, StatePrecision precision) {
  const RMSprop* const rmsprop = std::get_if<RMSprop>(&optimizer);
  if (precision == StatePrecision::bf16 && rmsprop != nullptr && rmsprop->centered) {
    fail(ErrorKind::unsupported,
         "optimizer: centered rmsprop subtracts one average from another, for which state in bf16 "
         "has too few digits; keep it in f32, or leave out centered");
  }
}

AddedUpdate add_update(Builder& builder, const Optimizer& optimizer, const ParameterGradient& pair,
                       const UpdateInputs& inputs, StatePrecision state) {
  Update update(builder, pair, inputs, state);
  return std::visit([&](const auto& o) { return add(update, o); }, optimizer);
}

}  // namespace graft
