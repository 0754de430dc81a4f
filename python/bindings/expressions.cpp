#include "python/bindings/expressions.h"

#include <graft/error.h>
#include <graft/model.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <variant>

#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"

namespace graft::python {
namespace {

using Axes = std::optional<std::variant<std::int64_t, std::vector<std::int64_t>>>;

std::vector<std::int64_t> list_of(const Axes& axes) {
  if (!axes) return {};
  if (const auto* one = std::get_if<std::int64_t>(&*axes)) return {*one};
  return std::get<std::vector<std::int64_t>>(*axes);
}

/// The other operand: a value, or anything that is a number or an array.
Expr operand(const GraphValue& like, nb::handle object) {
  if (nb::isinstance<GraphValue>(object)) return nb::cast<const GraphValue&>(object).expr();
  const Expr& expr = like.expr();
  const Tensor constant = to_tensor(object, "operand", expr.dtype());
  if (constant.rank() == 0) return constant_like(expr, to_double(constant).front());
  return expr.builder().expr(expr.builder().constant(constant.clone()));
}

AttributeValue attribute_value(nb::handle object, const std::string& name) {
  if (nb::isinstance<nb::bool_>(object)) return std::int64_t{nb::cast<bool>(object)};
  if (nb::isinstance<nb::int_>(object)) return nb::cast<std::int64_t>(object);
  if (nb::isinstance<nb::float_>(object)) return nb::cast<float>(object);
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  std::vector<std::int64_t> ints;
  if (nb::try_cast(object, ints)) return ints;
  std::vector<float> floats;
  if (nb::try_cast(object, floats)) return floats;
  std::vector<std::string> strings;
  if (nb::try_cast(object, strings)) return strings;
  return to_tensor(object, "attribute '" + name + "'").clone();
}

GraphValue call_op(const std::string& op, nb::args inputs, nb::kwargs attributes) {
  const GraphValue* first = nullptr;
  for (nb::handle input : inputs) {
    if (first == nullptr && nb::isinstance<GraphValue>(input)) {
      first = &nb::cast<const GraphValue&>(input);
    }
  }
  if (first == nullptr) {
    fail(ErrorKind::argument, "call '", op, "': none of the inputs is a value of a graph");
  }
  std::vector<Expr> operands;
  for (nb::handle input : inputs) {
    operands.push_back(input.is_none() ? Expr() : operand(*first, input));
  }
  Attributes given;
  for (const auto& [key, value] : attributes) {
    const std::string name = nb::cast<std::string>(key);
    given.set({name, attribute_value(value, name)});
  }
  return first->with(graft::call(op, operands, std::move(given)));
}

/// An operator with a value, a number or an array on its right, and on its left by `reflected`,
/// which comparisons need not: Python turns them round.
template <class Compute>
void add_operator(nb::class_<GraphValue>& value, const char* name, const char* reflected,
                  Compute compute) {
  value.def(
      name,
      [compute](const GraphValue& a, nb::handle b) {
        return a.with(compute(a.expr(), operand(a, b)));
      },
      nb::is_operator());
  if (reflected == nullptr) return;
  value.def(
      reflected,
      [compute](const GraphValue& a, nb::handle b) {
        return a.with(compute(operand(a, b), a.expr()));
      },
      nb::is_operator());
}

void add_operators(nb::class_<GraphValue>& value) {
  using E = const Expr&;
  add_operator(value, "__add__", "__radd__", [](E a, E b) { return a + b; });
  add_operator(value, "__sub__", "__rsub__", [](E a, E b) { return a - b; });
  add_operator(value, "__mul__", "__rmul__", [](E a, E b) { return a * b; });
  add_operator(value, "__truediv__", "__rtruediv__", [](E a, E b) { return a / b; });
  add_operator(value, "__pow__", "__rpow__", [](E a, E b) { return graft::call("Pow", {a, b}); });
  add_operator(value, "__lt__", nullptr, [](E a, E b) { return less(a, b); });
  add_operator(value, "__gt__", nullptr, [](E a, E b) { return greater(a, b); });
  add_operator(value, "__matmul__", "__rmatmul__", [](E a, E b) { return matmul(a, b); });
  value.def("__neg__", [](const GraphValue& x) { return x.with(-x.expr()); })
      .def("__abs__", [](const GraphValue& x) { return x.with(graft::call("Abs", {x.expr()})); });
}

void add_methods(nb::class_<GraphValue>& value) {
  value
      .def(
          "mean",
          [](const GraphValue& x, const Axes& axis, bool keepdims) {
            return x.with(reduce_mean(x.expr(), list_of(axis), keepdims));
          },
          nb::arg("axis") = nb::none(), nb::arg("keepdims") = false,
          "The mean over the axes, all without `axis`.")
      .def(
          "sum",
          [](const GraphValue& x, const Axes& axis, bool keepdims) {
            return x.with(reduce_sum(x.expr(), list_of(axis), keepdims));
          },
          nb::arg("axis") = nb::none(), nb::arg("keepdims") = false,
          "The sum over the axes, all without `axis`.")
      .def(
          "reshape",
          [](const GraphValue& x, const std::vector<std::int64_t>& shape) {
            return x.with(
                graft::call("Reshape", {x.expr(), constant_ints(x.expr().builder(), shape)}));
          },
          nb::arg("shape"), "The same elements in another shape; one dim may be -1.")
      .def(
          "transpose",
          [](const GraphValue& x, const std::vector<std::int64_t>& axes) {
            return x.with(transpose(x.expr(), axes));
          },
          nb::arg("axes"), "The axes in another order.");
}

}  // namespace

const Expr& GraphValue::expr() const {
  if (!*is_open_) {
    fail(ErrorKind::argument,
         "this value belongs to a graph that has been built; use it within the function that got "
         "it");
  }
  return expr_;
}

nb::object Formula::give(const Expr& expr) const {
  return nb::cast(GraphValue(expr, is_open_));
}

Expr Formula::take(nb::handle object, const char* who) {
  if (!nb::isinstance<GraphValue>(object)) {
    fail(ErrorKind::type, who, " returned a ", nb::inst_name(object).c_str(),
         ", wanted a value made of its arguments");
  }
  return nb::cast<const GraphValue&>(object).expr();
}

void bind_expressions(nb::module_& module) {
  nb::class_<GraphValue> value(
      module, "GraphValue",
      "A value of a graph under construction, in a loss or an optimizer of one's own: +, -, *, /, "
      "**, @, <, > and the methods add nodes, as graft.ops does; NumPy's broadcasting applies.");
  value
      .def_prop_ro("shape",
                   [](const GraphValue& x) {
                     const Shape shape = x.expr().shape();
                     nb::list dims;
                     for (const std::int64_t dim : shape) dims.append(dim);
                     return nb::tuple(dims);
                   })
      .def_prop_ro("dtype", [](const GraphValue& x) { return std::string(name(x.expr().dtype())); })
      .def("__repr__", [](const GraphValue& x) {
        return text("<graft value ", describe(x.expr().dtype(), x.expr().shape()), ">");
      });
  value.attr("__array_ufunc__") = nb::none();  // NumPy's arrays leave operators to us
  add_operators(value);
  add_methods(value);
  module.def("call", &call_op, nb::arg("op"), nb::arg("inputs"), nb::arg("attributes"),
             "Calls any op of ONNX with one output: call(\"Clip\", x, 0.0, 1.0). Attributes are "
             "named; None leaves an input out.");
}

}  // namespace graft::python
