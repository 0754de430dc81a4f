#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/ops/registry.h"

namespace graft {
namespace {

/// What the row says, of the optimizer that it is.
template <class T>
OptimizerRow<T> row_of(const T& /*optimizer*/) {
  return T::row();
}

/// One of each kind, with its default settings.
template <class... Kinds>
std::vector<Optimizer> defaults(const std::variant<Kinds...>* /*tag*/) {
  return {Kinds{}...};
}

std::vector<Optimizer> all_optimizers() {
  return defaults(static_cast<const Optimizer*>(nullptr));
}

template <class T>
float number(const OptimizerSetting<T>& setting, const T& optimizer) {
  return std::visit([&](auto member) { return static_cast<float>(optimizer.*member); },
                    setting.member);
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
    while (inputs_.back() == nullptr) {  // states that are not kept, behind those that are
      inputs_.pop_back();
      outputs_.pop_back();
    }
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

/// The attributes of the op that settings and flags give.
template <class T>
Attributes attributes_of(const T& optimizer, const OptimizerRow<T>& row, const OpDef& op) {
  Attributes attributes;
  for (const AttributeDef& attribute : op.attributes) {
    const auto setting =
        std::ranges::find(row.settings, attribute.name, &OptimizerSetting<T>::name);
    if (setting != row.settings.end()) {
      const float value = number(*setting, optimizer);
      attributes.set({attribute.name, attribute.type == AttributeType::integer
                                          ? AttributeValue(static_cast<std::int64_t>(value))
                                          : AttributeValue(value)});
    } else if (std::ranges::find(row.flags, attribute.name) != row.flags.end()) {
      attributes.set({attribute.name, 1});
    }
  }
  return attributes;
}

template <class T>
AddedUpdate add(Update& update, const T& optimizer) {
  const OptimizerRow<T> row = row_of(optimizer);
  for (const OptimizerState<T>& state : row.state) {
    update.state(state.name, state.is_kept == nullptr || state.is_kept(optimizer));
  }
  const OpDef& op = *OpRegistry::instance().find(row.op, kInternalDomain);
  return update.add(row.op, attributes_of(optimizer, row, op));
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

template <class T>
void check_setting(const OptimizerSetting<T>& setting, float value) {
  using Range = typename OptimizerSetting<T>::Range;
  switch (setting.range) {
    case Range::amount:
      return check_amount(setting.name, value);
    case Range::share:
      return check_share(setting.name, value);
    case Range::any:
      return require(std::isfinite(value), setting.name, value, "a finite number");
  }
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : all_optimizers()) names.emplace_back(name(optimizer));
  return names;
}

Optimizer optimizer_from_name(std::string_view wanted) {
  std::string valid;
  for (const Optimizer& optimizer : all_optimizers()) {
    if (name(optimizer) == wanted) return optimizer;
    valid += (valid.empty() ? "" : ", ") + std::string(name(optimizer));
  }
  fail(ErrorKind::argument, "unknown optimizer '", wanted, "'; valid: ", valid);
}

std::string_view name(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return row_of(o).name; }, optimizer);
}

float learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.lr; }, optimizer);
}

void set_learning_rate(Optimizer& optimizer, float lr) {
  std::visit([lr](auto& o) { o.lr = lr; }, optimizer);
}

void set_setting(Optimizer& optimizer, std::string_view setting, float value) {
  const auto set = [&]<class T>(T& o) {
    for (const OptimizerSetting<T>& one : row_of(o).settings) {
      if (one.name != setting) continue;
      std::visit([&]<class M>(M T::*member) { o.*member = static_cast<M>(value); }, one.member);
      return;
    }
    fail(ErrorKind::argument, "optimizer ", name(optimizer), " has no ", setting, " setting");
  };
  std::visit(set, optimizer);
}

void set_momentum(Optimizer& optimizer, float momentum) {
  set_setting(optimizer, "momentum", momentum);
}

void set_weight_decay(Optimizer& optimizer, float weight_decay) {
  set_setting(optimizer, "weight_decay", weight_decay);
}

void check(const Optimizer& optimizer) {
  const auto check_one = []<class T>(const T& o) {
    const OptimizerRow<T> row = row_of(o);
    check_amount("lr", o.lr);
    for (const OptimizerSetting<T>& setting : row.settings) {
      check_setting(setting, number(setting, o));
    }
    const std::string_view problem = row.problem == nullptr ? "" : row.problem(o);
    if (!problem.empty()) fail(ErrorKind::argument, "optimizer: ", problem);
  };
  std::visit(check_one, optimizer);
}

void check(const Optimizer& optimizer, StatePrecision precision) {
  if (precision == StatePrecision::f32) return;
  const auto check_one = []<class T>(const T& o) {
    const OptimizerRow<T> row = row_of(o);
    const std::string_view reason = row.needs_f32 == nullptr ? "" : row.needs_f32(o);
    if (!reason.empty()) fail(ErrorKind::unsupported, "optimizer: ", reason);
  };
  std::visit(check_one, optimizer);
}

AddedUpdate add_update(Builder& builder, const Optimizer& optimizer, const ParameterGradient& pair,
                       const UpdateInputs& inputs, StatePrecision state) {
  Update update(builder, pair, inputs, state);
  return std::visit([&](const auto& o) { return add(update, o); }, optimizer);
}

}  // namespace graft
