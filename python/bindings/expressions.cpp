#include "python/bindings/expressions.h"

#include <graft/error.h>
#include <graft/model.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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

Expr constant_of(const Expr& like, const Tensor& tensor) {
  return like.builder().expr(like.builder().constant(tensor.clone()));
}

/// Throws Error{type} if the number would be cut off beside a value of that type.
double whole_number(double number, DType dtype) {
  bool fits = false;
  visit_dtype(IntegerTypes{}, dtype, [&]<class T>() {
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double first = std::is_signed_v<T> ? -end : 0.0;
    fits = std::trunc(number) == number && number >= first && number < end;
  });
  if (fits) return number;
  fail(ErrorKind::type, "found the number ", number, " beside a value of ", dtype,
       ", which cannot hold it; cast the value first, as graft.ops.call(\"Cast\", x, to=1) to f32");
}

/// The other operand: a value, or anything that is a number or an array, with the type of `like`.
Expr operand(const GraphValue& like, nb::handle object) {
  if (nb::isinstance<GraphValue>(object)) return nb::cast<const GraphValue&>(object).expr();
  const Expr& expr = like.expr();
  const DType wanted = expr.dtype();
  const Tensor constant = to_tensor(object, "operand", wanted);
  if (constant.dtype() == wanted || constant.rank() > 0) return constant_of(expr, constant);
  const double number = to_double(constant).front();
  return constant_like(expr, is_float(wanted) ? number : whole_number(number, wanted));
}

/// The inputs of an op that ONNX wants integers for whatever the type of the others is: indices,
/// axes, shapes, and what else says where or how many. A test holds the list against ONNX's
/// schemas.
struct IntegerInputs {
  std::string_view op;
  std::size_t first;
  std::size_t last;
};

constexpr IntegerInputs kIntegerInputs[] = {
    {"AffineGrid", 1, 1},
    {"Attention", 6, 6},
    {"CenterCropPad", 1, 1},
    {"Col2Im", 1, 2},
    {"CumProd", 1, 1},
    {"CumSum", 1, 1},
    {"DFT", 1, 2},
    {"Expand", 1, 1},
    {"GRU", 4, 4},
    {"Gather", 1, 1},
    {"GatherElements", 1, 1},
    {"GatherND", 1, 1},
    {"LSTM", 4, 4},
    {"MaxUnpool", 1, 2},
    {"NegativeLogLikelihoodLoss", 1, 1},
    {"NonMaxSuppression", 2, 2},
    {"Pad", 1, 1},
    {"Pad", 3, 3},
    {"RNN", 4, 4},
    {"Reshape", 1, 1},
    {"Resize", 3, 3},
    {"ReverseSequence", 1, 1},
    {"RoiAlign", 2, 2},
    {"RotaryEmbedding", 3, 3},
    {"STFT", 1, 1},
    {"STFT", 3, 3},
    {"Scatter", 1, 1},
    {"ScatterElements", 1, 1},
    {"ScatterND", 1, 1},
    {"Slice", 1, 4},
    {"SoftmaxCrossEntropyLoss", 1, 1},
    {"Split", 1, 1},
    {"SplitToSequence", 1, 1},
    {"Squeeze", 1, 1},
    {"TensorScatter", 2, 2},
    {"Tile", 1, 1},
    {"TopK", 1, 1},
    {"Trilu", 1, 1},
    {"Unsqueeze", 1, 1},
};

bool takes_integers(std::string_view op, std::size_t input) {
  if (op.starts_with("Reduce")) return input == 1;
  return std::ranges::any_of(kIntegerInputs, [&](const IntegerInputs& known) {
    return known.op == op && known.first <= input && input <= known.last;
  });
}

/// An input of `call`.
Expr input_of(const std::string& op, std::size_t input, const GraphValue& like, nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<GraphValue>(object) || !takes_integers(op, input)) {
    return operand(like, object);
  }
  const Tensor constant = to_tensor(object, "operand");
  if (constant.dtype() == DType::i32) return constant_of(like.expr(), constant);
  const bool is_empty_list = constant.size() == 0;  // which NumPy takes for floats
  const Tensor integers =
      is_empty_list ? constant.cast(DType::i64) : converted(constant, "operand", DType::i64);
  return constant_of(like.expr(), integers);
}

/// The numbers of NumPy as those of Python.
nb::object plain(nb::handle object) {
  const bool is_scalar = nb::isinstance(object, nb::module_::import_("numpy").attr("generic"));
  return is_scalar ? nb::object(object.attr("item")()) : nb::borrow(object);
}

AttributeValue attribute_value(nb::handle given, const std::string& name) {
  const nb::object object = plain(given);
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
    operands.push_back(input_of(op, operands.size(), *first, input));
  }
  Attributes given;
  for (const auto& [key, value] : attributes) {
    const std::string name = nb::cast<std::string>(key);
    given.set({name, attribute_value(value, name)});
  }
  return first->with(graft::call(op, operands, std::move(given)));
}

GraphValue choose(const GraphValue& condition, nb::handle a, nb::handle b) {
  const bool is_a = nb::isinstance<GraphValue>(a);
  if (!is_a && !nb::isinstance<GraphValue>(b)) {
    fail(ErrorKind::argument, "where: found a ", nb::inst_name(a).c_str(), " and a ",
         nb::inst_name(b).c_str(), ", wanted a value of a graph as one of the two");
  }
  const auto& like = nb::cast<const GraphValue&>(is_a ? a : b);
  return like.with(where(condition.expr(), operand(like, a), operand(like, b)));
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
  module.def(
      "call", &call_op, nb::arg("op"), nb::arg("inputs"), nb::arg("attributes"),
      "Calls any op of ONNX with one output: call(\"Clip\", x, 0.0, 1.0). Attributes are "
      "named; None leaves an input out. A number or an array becomes a constant of the type of "
      "the first value, but for indices, axes, shapes and the like, which stay integers.");
  module.def(
      "takes_integers",
      [](const std::string& op, std::size_t input) { return takes_integers(op, input); },
      nb::arg("op"), nb::arg("input"));
  module.def("where", &choose, nb::arg("condition"), nb::arg("a"), nb::arg("b"),
             "`a` where the condition holds, `b` elsewhere; one of the two is a graph value, and a "
             "number or an array as the other becomes a constant of its type.");
}

}  // namespace graft::python
