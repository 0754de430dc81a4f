#include "core/passes/microsoft_call_internal.h"

#include <utility>

namespace graft::passes {

Expr MicrosoftCall::input(int index) const {
  Value* const value = node_.input(index);
  if (value == nullptr) return {};
  if (value->dtype() == DType::undefined) {
    unsupported("the type of its input '", value->name(), "' is not known");
  }
  return builder_.expr(value);
}

Expr MicrosoftCall::required(int index) const {
  if (!has(index)) fail(ErrorKind::model, node_.label(), ": input ", index, " is missing");
  return input(index);
}

void MicrosoftCall::refuse_input(int index, std::string_view what) const {
  if (has(index)) unsupported("no form for its input ", index, " (", what, ")");
}

void MicrosoftCall::require(std::string_view name, std::int64_t value) const {
  const std::int64_t found = integer(name, value);
  if (found != value)
    unsupported(name, " is ", found, ", and there is a form for ", value, " only");
}

int MicrosoftCall::rank(const Expr& x) const {
  if (!x.value()->shape()) unsupported("the rank of '", x.value()->name(), "' is not known");
  return x.value()->shape()->rank();
}

std::int64_t MicrosoftCall::dim(const Expr& x, int axis) const {
  const int all = rank(x);
  const int place = axis < 0 ? axis + all : axis;
  if (place < 0 || place >= all) {
    fail(ErrorKind::shape, node_.label(), ": '", x.value()->name(), "' is ", x.value()->type(),
         ", which has no axis ", axis);
  }
  const Dim& found = (*x.value()->shape())[place];
  if (!found.is_known()) {
    unsupported("dim ", axis, " of '", x.value()->name(), "' ", x.value()->type(), " is not known");
  }
  return found.value();
}

Expr MicrosoftCall::swapped(const Expr& x) const {
  std::vector<std::int64_t> order;
  for (int i = 0; i < rank(x); ++i) order.push_back(i);
  if (order.size() < 2) return x;
  std::swap(order.back(), order[order.size() - 2]);
  return transpose(x, order);
}

Expr MicrosoftCall::range_along(const Expr& x, int axis) const {
  const auto scalar = [&](std::int64_t number) {
    return builder_.expr(builder_.constant(Tensor::scalar(number)));
  };
  const Expr size = call("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
  return call("Range", {scalar(0), call("Squeeze", {size, ints({0})}), scalar(1)});
}

Expr activated(const MicrosoftCall& c, const Expr& x, const std::string& name,
               const std::vector<float>& numbers) {
  const auto number = [&](std::size_t i, float fallback) {
    return i < numbers.size() ? numbers[i] : fallback;
  };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh" || name == "Softplus") {
    return call(name, {x});
  }
  if (name == "LeakyRelu") return call(name, {x}, {{"alpha", number(0, 0.01F)}});
  if (name == "HardSigmoid") {
    return call(name, {x}, {{"alpha", number(0, 0.2F)}, {"beta", number(1, 0.5F)}});
  }
  if (name == "Clip" && numbers.size() == 2) {
    return call(name, {x, constant_like(x, static_cast<double>(numbers[0])),
                       constant_like(x, static_cast<double>(numbers[1]))});
  }
  c.unsupported("no form for its activation '", name, "' with ", numbers.size(), " settings");
}

Expr fused_conv(const MicrosoftCall& c, const Expr& weight) {
  Attributes attributes = c.node().attributes;
  const std::string activation = attributes.get_string("activation", "");
  const std::vector<float> numbers = attributes.get_floats("activation_params");
  attributes.erase("activation");
  attributes.erase("activation_params");
  Expr y = call("Conv", {c.required(0), weight, c.input(2)}, attributes);
  if (c.has(3)) y = y + c.input(3);
  return activated(c, y, activation, numbers);
}

}  // namespace graft::passes
