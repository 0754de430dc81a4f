#include "optim/update.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/ops/registry.h"

namespace graft {
namespace {

/// A variable of zeros, "<parameter>.<suffix>", of the parameter's shape.
Value* add_state(Graph& graph, const Value& parameter, std::string_view suffix, DType dtype) {
  Value* const state = graph.add_initializer(graph.unique_name(text(parameter.name(), ".", suffix)),
                                             Tensor::zeros(dtype, parameter.known_shape()));
  state->is_variable = true;
  return state;
}

/// A call of the update op under construction.
class UpdateCall {
 public:
  UpdateCall(Builder& builder, const ParameterGradient& pair, const UpdateInputs& inputs,
             StatePrecision state)
      : builder_(builder), parameter_(pair.parameter), state_precision_(state) {
    const DType dtype = parameter_->dtype();
    inputs_ = {parameter_, pair.gradient.value(), cast(inputs.lr, dtype).value(),
               inputs.step.value()};
  }

  /// A state tensor of the parameter's shape, starting at zero; left out unless `wanted`.
  UpdateCall& state(std::string_view suffix, bool wanted = true) {
    if (!wanted) {
      inputs_.push_back(nullptr);
      outputs_.push_back("");
      return *this;
    }
    Graph& graph = builder_.graph();
    Value* const value = add_state(graph, *parameter_, suffix, state_type());
    states_.push_back(value);
    inputs_.push_back(value);
    outputs_.push_back(graph.unique_name(text(parameter_->name(), ".", suffix, ".new")));
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
  std::vector<Attribute> attributes;
  attributes.reserve(op.attributes.size());
  for (const AttributeDef& attribute : op.attributes) {
    const auto setting =
        std::ranges::find(row.settings, attribute.name, &OptimizerSetting<T>::name);
    if (setting != row.settings.end()) {
      const float value = number(*setting, optimizer);
      attributes.emplace_back(attribute.name, attribute.type == AttributeType::integer
                                                  ? AttributeValue(static_cast<std::int64_t>(value))
                                                  : AttributeValue(value));
    } else if (std::ranges::find(row.flags, attribute.name) != row.flags.end()) {
      attributes.emplace_back(attribute.name, 1);
    }
  }
  return Attributes(std::move(attributes));
}

template <class T>
AddedUpdate add(UpdateCall& update, const T& optimizer) {
  static const OptimizerRow<T> row = T::row();
  for (const OptimizerState<T>& state : row.state) {
    update.state(state.name, state.is_kept == nullptr || state.is_kept(optimizer));
  }
  const OpDef& op = *OpRegistry::instance().find(row.op, kInternalDomain);
  return update.add(row.op, attributes_of(optimizer, row, op));
}

/// Writes a formula's result to its variable, and returns the new content.
Value* assign(const Expr& result, Value* variable) {
  Builder& builder = result.builder();
  const ValueType& found = result.value()->type();
  if (found.dtype != variable->dtype() || result.shape() != variable->known_shape()) {
    fail(found.dtype != variable->dtype() ? ErrorKind::type : ErrorKind::shape,
         "optimizer: the formula makes ", found, " of '", variable->name(), "', wanted ",
         variable->type());
  }
  return call_internal("Assign", {builder.expr(variable), result}).value();
}

/// The parameter comes last: a state may take over what it was.
AddedUpdate add_custom_update(Builder& builder, const CustomOptimizer& o,
                              const ParameterGradient& pair, const UpdateInputs& inputs) {
  Value* const parameter = pair.parameter;
  const DType dtype = parameter->dtype();
  AddedUpdate added;
  std::vector<Expr> state;
  for (const std::string& suffix : o.state) {
    added.state.push_back(add_state(builder.graph(), *parameter, suffix, dtype));
    state.push_back(builder.expr(added.state.back()));
  }
  const Update update = o.step(builder.expr(parameter), cast(pair.gradient, dtype),
                               cast(inputs.lr, dtype), cast(inputs.step, DType::f64), state);
  if (!update.parameter || update.state.size() != state.size() ||
      !std::ranges::all_of(update.state, [](const Expr& e) { return static_cast<bool>(e); })) {
    fail(ErrorKind::argument, "optimizer: for '", parameter->name(), "' the formula gives ",
         update.parameter ? "a" : "no", " parameter and ", update.state.size(),
         " states, wanted a parameter and ", state.size());
  }
  for (std::size_t i = 0; i < state.size(); ++i) assign(update.state[i], added.state[i]);
  added.parameter = assign(update.parameter, parameter);
  return added;
}

}  // namespace

AddedUpdate add_update(Builder& builder, const Optimizer& optimizer, const ParameterGradient& pair,
                       const UpdateInputs& inputs, StatePrecision state) {
  return std::visit(
      [&]<class O>(const O& o) {
        if constexpr (std::is_same_v<O, CustomOptimizer>) {
          return add_custom_update(builder, o, pair, inputs);
        } else {
          UpdateCall update(builder, pair, inputs, state);
          return add(update, o);
        }
      },
      optimizer);
}

}  // namespace graft
