#include "core/base/at.h"
#include "core/ops/builder.h"
#include "core/ops/kernels/conv_expr.h"
#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

bool is_byte(DType dtype) {
  return dtype == DType::i8 || dtype == DType::u8;
}

/// Scales or zero points [n], one a row or channel, so that they stand along `axis` of a value of
/// `rank` axes; one number stays as it is. Those of more axes broadcast by themselves.
Expr along(const Expr& parameters, int axis, int rank) {
  if (parameters.shape().size() == 1) return reshape(parameters, {});
  if (parameters.rank() != 1) return parameters;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
  at(dims, axis) = parameters.shape()[0];
  return reshape(parameters, Shape(std::move(dims)));
}

/// The axis of an operand's rows (a) or columns (b).
int row_axis(const Expr& a) {
  return std::max(a.rank() - 2, 0);
}
int column_axis(const Expr& b) {
  return b.rank() - 1;
}

/// x - zero point in `dtype`, which holds the difference exactly.
Expr centred(const Expr& x, const Expr& zero, int axis, DType dtype) {
  const Expr whole = cast(x, dtype);
  return zero ? whole - along(cast(zero, dtype), axis, x.rank()) : whole;
}

Expr input(const Node& node, Builder& builder, int index) {
  return node.input(index) == nullptr ? Expr() : builder.expr(node.input(index));
}

std::vector<Expr> expand_matmul_integer(const Node& node, Builder& builder) {
  const Expr a = input(node, builder, 0);
  const Expr b = input(node, builder, 1);
  return {matmul(centred(a, input(node, builder, 2), row_axis(a), DType::i32),
                 centred(b, input(node, builder, 3), column_axis(b), DType::i32))};
}

/// Bytes multiply exactly in i32; float 8 in f32.
std::vector<Expr> expand_qlinear_matmul(const Node& node, Builder& builder) {
  const auto in = [&](int index) { return input(node, builder, index); };
  const Expr a = in(0);
  const Expr b = in(3);
  const DType dtype = is_byte(a.dtype()) && is_byte(b.dtype()) ? DType::i32 : DType::f32;
  const Expr product =
      matmul(centred(a, in(2), row_axis(a), dtype), centred(b, in(5), column_axis(b), dtype));
  const Expr scale = along(cast(in(1), DType::f32), row_axis(a), a.rank()) *
                     along(cast(in(4), DType::f32), column_axis(b), b.rank());
  return {call("QuantizeLinear",
               {cast(product, DType::f32) * scale, cast(in(6), DType::f32), in(7)},
               {{"axis", std::max(product.rank() - 2, 0)}})};
}

/// What Conv has of a node's attributes.
Attributes conv_attributes(const Node& node) {
  Attributes attributes;
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}) {
    if (const Attribute* const found = node.attributes.find(name)) attributes.set(*found);
  }
  return attributes;
}

std::vector<Expr> expand_conv_integer(const Node& node, Builder& builder) {
  return {call("Conv",
               {centred(input(node, builder, 0), input(node, builder, 2), 1, DType::i32),
                centred(input(node, builder, 1), input(node, builder, 3), 0, DType::i32)},
               conv_attributes(node))};
}

std::vector<Expr> expand_qlinear_conv(const Node& node, Builder& builder) {
  const auto in = [&](int index) { return input(node, builder, index); };
  std::vector<Expr> operands{centred(in(0), in(2), 1, DType::i32),
                             centred(in(3), in(5), 0, DType::i32)};
  if (const Expr bias = in(8)) operands.push_back(bias);
  const Expr y = call("Conv", operands, conv_attributes(node));
  const Expr scale = cast(in(1), DType::f32) * along(cast(in(4), DType::f32), 1, y.rank());
  return {call("QuantizeLinear", {cast(y, DType::f32) * scale, cast(in(6), DType::f32), in(7)},
               {{"axis", 1}})};
}

void require_byte(const InferContext& context, int index) {
  const DType dtype = context.dtype(index);
  if (dtype != DType::undefined && !is_byte(dtype)) {
    context.fail(ErrorKind::type, "input ", index, " is ", dtype, ", wanted i8 or u8");
  }
}

/// Throws Error{shape} unless a zero point or scale that stands for rows or channels fits: one
/// number, or `wanted` of them.
void require_count(const InferContext& context, int index, const Dim& wanted) {
  const SymShape* const shape = context.shape(index);
  if (shape == nullptr || shape->rank() == 0) return;
  const Dim& found = (*shape)[0];
  if (shape->rank() > 1 || !found.is_known() || !wanted.is_known()) return;
  if (found.value() == 1 || found.value() == wanted.value()) return;
  context.fail(ErrorKind::shape, "input ", index, " is ", *shape, ", wanted one number or ",
               wanted);
}

/// Broadcast of the batch axes and the outer axes of a and b; `b` is the index of the second.
SymShape product_shape(const InferContext& context, int b) {
  SymShape left = *context.shape(0);
  SymShape right = *context.shape(b);
  if (left.rank() == 0 || right.rank() == 0) {
    context.fail(ErrorKind::shape, "cannot multiply ", left, " by ", right);
  }
  const auto dims = [](const SymShape& shape, int last) {
    return SymShape(std::vector<Dim>(shape.begin(), shape.begin() + std::max(last, 0)));
  };
  const Dim& inner = right[std::max(right.rank() - 2, 0)];
  const Dim& columns = left[left.rank() - 1];
  if (inner.is_known() && columns.is_known() && inner.value() != columns.value()) {
    context.fail(ErrorKind::shape, "cannot multiply ", left, " by ", right, ": inner dims ",
                 columns, " and ", inner, " differ");
  }
  std::vector<Dim> result =
      broadcast(context, dims(left, left.rank() - 2), dims(right, right.rank() - 2)).dims();
  if (left.rank() > 1) result.push_back(left[left.rank() - 2]);
  if (right.rank() > 1) result.push_back(right[right.rank() - 1]);
  return SymShape(std::move(result));
}

void set_product(InferContext& context, int b, DType dtype) {
  if (context.shape(0) == nullptr || context.shape(b) == nullptr) {
    return context.set_output(0, dtype);
  }
  context.set_output(0, dtype, product_shape(context, b));
}

Dim rows_of(const SymShape* shape) {
  return shape == nullptr || shape->rank() < 2 ? Dim() : (*shape)[shape->rank() - 2];
}
Dim columns_of(const SymShape* shape) {
  return shape == nullptr || shape->rank() < 2 ? Dim() : (*shape)[shape->rank() - 1];
}

void infer_matmul_integer(InferContext& context) {
  for (const int index : {0, 1, 2, 3}) require_byte(context, index);
  context.require_same_dtype({0, 2});
  context.require_same_dtype({1, 3});
  require_count(context, 2, rows_of(context.shape(0)));
  require_count(context, 3, columns_of(context.shape(1)));
  set_product(context, 1, DType::i32);
}

void infer_qlinear_matmul(InferContext& context) {
  context.require_same_dtype({0, 2});
  context.require_same_dtype({3, 5});
  for (const int index : {1, 2}) require_count(context, index, rows_of(context.shape(0)));
  for (const int index : {4, 5}) require_count(context, index, columns_of(context.shape(3)));
  for (const int index : {1, 4, 6}) {
    const DType dtype = context.dtype(index);
    if (dtype != DType::undefined && !is_float(dtype)) {
      context.fail(ErrorKind::type, "scale ", index, " is ", dtype, ", wanted a float type");
    }
  }
  set_product(context, 3, context.dtype(7));
}

Dim first_of(const SymShape* shape) {
  return shape == nullptr || shape->rank() == 0 ? Dim() : (*shape)[0];
}

void infer_conv_integer(InferContext& context) {
  for (const int index : {0, 1, 2, 3}) require_byte(context, index);
  context.require_same_dtype({0, 2});
  context.require_same_dtype({1, 3});
  require_count(context, 2, Dim(1));
  require_count(context, 3, first_of(context.shape(1)));
  set_conv_output(context, 1, DType::i32);
}

void infer_qlinear_conv(InferContext& context) {
  for (const int index : {0, 2, 3, 5, 7}) require_byte(context, index);
  context.require_same_dtype({0, 2});
  context.require_same_dtype({3, 5});
  context.require_same_dtype({1, 4, 6});
  const DType bias = context.dtype(8);
  if (bias != DType::undefined && bias != DType::i32) {
    context.fail(ErrorKind::type, "the bias is ", bias, ", wanted i32");
  }
  for (const int index : {1, 2, 6, 7}) require_count(context, index, Dim(1));
  for (const int index : {4, 5}) require_count(context, index, first_of(context.shape(3)));
  context.require_rank(8, 1, 1);
  require_dim(context, 8, 0, first_of(context.shape(3)));
  set_conv_output(context, 3, context.dtype(7));
}

SampleInput bytes(Shape shape, DType dtype) {
  const bool is_signed = dtype == DType::i8;
  return {.shape = std::move(shape),
          .low = is_signed ? -100.0 : 0.0,
          .high = is_signed ? 100.0 : 200.0,
          .dtype = dtype};
}
SampleInput scale(Shape shape, double low = 0.01, double high = 0.1) {
  return {.shape = std::move(shape), .low = low, .high = high};
}

std::vector<Sample> matmul_integer_samples() {
  const auto u8 = [](Shape shape) { return bytes(std::move(shape), DType::u8); };
  const auto i8 = [](Shape shape) { return bytes(std::move(shape), DType::i8); };
  return {
      {"plain", {u8({3, 4}), i8({4, 2})}},
      {"zero_points", {u8({3, 4}), i8({4, 2}), u8({}), i8({})}},
      {"rows_and_columns", {u8({3, 4}), u8({4, 2}), u8({3}), u8({2})}},
      {"batch", {i8({2, 3, 4}), u8({4, 2}), i8({2, 3, 1}), u8({1})}},
      {"vectors", {u8({4}), u8({4}), u8({}), u8({})}},
      {"empty", {u8({0, 4}), u8({4, 2}), u8({}), u8({})}},
      {"odd", {u8({17, 33}), i8({33, 19}), u8({17}), i8({19})}},
  };
}

std::vector<Sample> qlinear_matmul_samples() {
  const auto call = [](std::string name, Shape a, Shape b, Shape rows, Shape columns, DType dtype) {
    return Sample{
        std::move(name),
        {bytes(std::move(a), dtype), scale(rows), bytes(rows, dtype), bytes(std::move(b), dtype),
         scale(columns), bytes(columns, dtype), scale({}, 0.5, 1.0), bytes({}, dtype)}};
  };
  return {
      call("u8", {3, 4}, {4, 2}, {}, {}, DType::u8),
      call("i8", {3, 4}, {4, 2}, {}, {}, DType::i8),
      call("rows_and_columns", {3, 4}, {4, 2}, {3}, {2}, DType::i8),
      call("batch", {2, 3, 4}, {2, 4, 5}, {}, {}, DType::u8),
      call("odd", {9, 33}, {33, 19}, {}, {19}, DType::i8),
      call("empty", {0, 4}, {4, 2}, {}, {}, DType::u8),
      call("one_row", {1, 4}, {4, 1}, {}, {}, DType::u8),
      call("one_left", {1, 3, 4}, {2, 4, 5}, {}, {}, DType::u8),
      call("one_right", {2, 3, 4}, {1, 4, 5}, {}, {}, DType::i8),
  };
}

std::vector<Sample> conv_integer_samples() {
  const SampleInput x = bytes({2, 4, 5, 5}, DType::u8);
  return {
      {"plain", {x, bytes({3, 4, 3, 3}, DType::i8)}},
      {"zero_points",
       {x, bytes({3, 4, 3, 3}, DType::i8), bytes({}, DType::u8), bytes({3}, DType::i8)},
       {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}},
      {"groups",
       {x, bytes({4, 2, 2, 2}, DType::u8), bytes({}, DType::u8), bytes({}, DType::u8)},
       {{"group", 2}, {"strides", std::vector<std::int64_t>{2, 1}}}},
      {"same_upper",
       {x, bytes({3, 4, 2, 2}, DType::u8)},
       {{"auto_pad", "SAME_UPPER"}, {"kernel_shape", std::vector<std::int64_t>{2, 2}}}},
      {"dilated",
       {bytes({1, 1, 4, 5}, DType::u8), bytes({2, 1, 2, 2}, DType::u8)},
       {{"dilations", std::vector<std::int64_t>{2, 3}}}},
      {"empty_batch", {bytes({0, 4, 5, 5}, DType::u8), bytes({3, 4, 3, 3}, DType::u8)}},
  };
}

using Ints = std::vector<std::int64_t>;

std::vector<Sample> qlinear_conv_samples() {
  const auto call = [](std::string name, DType dtype, Shape channels, bool has_bias) {
    Sample sample{
        std::move(name),
        {bytes({1, 3, 5, 5}, dtype), scale({}), bytes({}, dtype), bytes({4, 3, 3, 3}, dtype),
         scale(channels), bytes(channels, dtype), scale({}, 0.5, 1.0), bytes({}, dtype)}};
    if (has_bias) {
      sample.inputs.push_back({.shape = {4}, .low = -500, .high = 500, .dtype = DType::i32});
    }
    return sample;
  };
  const auto other = [&](std::string name, Shape x, Shape w, Attributes attributes) {
    Sample sample = call(std::move(name), DType::u8, {}, false);
    sample.inputs[0].shape = std::move(x);
    sample.inputs[3].shape = std::move(w);
    sample.attributes = std::move(attributes);
    return sample;
  };
  return {call("u8", DType::u8, {}, false),
          call("i8_bias", DType::i8, {}, true),
          call("channels", DType::i8, {4}, true),
          other("groups", {1, 4, 5, 5}, {4, 2, 2, 2},
                {{"group", 2}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 0, 1}}}),
          other("same_lower", {1, 2, 4, 5}, {1, 2, 2, 2},
                {{"auto_pad", "SAME_LOWER"}, {"kernel_shape", Ints{2, 2}}}),
          other("dilated", {1, 1, 4, 5}, {2, 1, 2, 2}, {{"dilations", Ints{2, 3}}}),
          other("empty_batch", {0, 3, 5, 5}, {4, 3, 3, 3}, {})};
}

std::vector<AttributeDef> window_attributes() {
  return {{"auto_pad", AttributeType::text}, {"dilations", AttributeType::integers},
          {"group", AttributeType::integer}, {"kernel_shape", AttributeType::integers},
          {"pads", AttributeType::integers}, {"strides", AttributeType::integers}};
}

}  // namespace

/// Products of quantized values, as sums in i32 of differences to the zero points: MatMulInteger,
/// ConvInteger, QLinearMatMul, QLinearConv. No kernel of their own: they run as their simpler ops.
void register_quantized_product(OpRegistry& registry) {
  registry.add({.name = "MatMulInteger",
                .since = {{10}},
                .inputs = {{"A"},
                           {"B"},
                           {"a_zero_point", Arity::optional},
                           {"b_zero_point", Arity::optional}},
                .outputs = {{"Y"}},
                .infer = infer_matmul_integer,
                .backward = Decomposition{expand_matmul_integer},
                .samples = matmul_integer_samples});
  registry.add({.name = "ConvInteger",
                .since = {{10}},
                .inputs = {{"x"},
                           {"w"},
                           {"x_zero_point", Arity::optional},
                           {"w_zero_point", Arity::optional}},
                .outputs = {{"y"}},
                .attributes = window_attributes(),
                .infer = infer_conv_integer,
                .backward = Decomposition{expand_conv_integer},
                .samples = conv_integer_samples});
  registry.add({.name = "QLinearMatMul",
                .since = {{10}, {21, "float 8, scales of short types"}},
                .inputs = {{"a"},
                           {"a_scale"},
                           {"a_zero_point"},
                           {"b"},
                           {"b_scale"},
                           {"b_zero_point"},
                           {"y_scale"},
                           {"y_zero_point"}},
                .outputs = {{"y"}},
                .infer = infer_qlinear_matmul,
                .backward = Decomposition{expand_qlinear_matmul},
                .samples = qlinear_matmul_samples});
  registry.add({.name = "QLinearConv",
                .since = {{10}},
                .inputs = {{"x"},
                           {"x_scale"},
                           {"x_zero_point"},
                           {"w"},
                           {"w_scale"},
                           {"w_zero_point"},
                           {"y_scale"},
                           {"y_zero_point"},
                           {"B", Arity::optional}},
                .outputs = {{"y"}},
                .attributes = window_attributes(),
                .infer = infer_qlinear_conv,
                .backward = Decomposition{expand_qlinear_conv},
                .samples = qlinear_conv_samples});
}

}  // namespace graft
