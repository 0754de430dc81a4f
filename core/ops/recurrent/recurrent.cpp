#include "core/ops/recurrent/recurrent.h"

#include "core/base/at.h"
#include "core/ops/builder.h"
#include "core/ops/cost.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

Dim times(const Dim& dim, std::int64_t factor) {
  if (factor == 1) return dim;
  return dim.is_known() ? Dim(checked_multiply(dim.value(), factor)) : Dim();
}

/// The known one of two dims that should be equal.
const Dim& either(const Dim& a, const Dim& b) {
  return a.is_known() ? a : b;
}

/// Sizes as far as the inputs tell; the shapes that follow from them.
class Shapes {
 public:
  Shapes(const InferContext& context, const RecurrentSettings& settings, int x, int w, int r)
      : settings_(settings), directions_(settings.directions) {
    for (const int input : {x, w, r}) context.require_rank(input, 3, 3);
    if (const SymShape* const shape = context.shape(x)) {
      steps_ = (*shape)[settings.batch_first ? 1 : 0];
      batch_ = (*shape)[settings.batch_first ? 0 : 1];
      input_ = (*shape)[2];
    }
    if (const SymShape* const shape = context.shape(w)) input_ = either(input_, (*shape)[2]);
    if (const SymShape* const shape = context.shape(r)) hidden_ = (*shape)[2];
    const std::int64_t hidden = context.attributes().get_int("hidden_size", 0);
    if (hidden > 0) hidden_ = either(hidden, hidden_);
  }

  SymShape x() const {
    return settings_.batch_first ? SymShape{batch_, steps_, input_}
                                 : SymShape{steps_, batch_, input_};
  }
  SymShape w() const { return {directions_, gate_columns(), input_}; }
  SymShape r() const { return {directions_, gate_columns(), hidden_}; }
  SymShape b() const { return {directions_, times(gate_columns(), 2)}; }
  SymShape lengths() const { return {batch_}; }
  SymShape p() const { return {directions_, times(hidden_, 3)}; }
  SymShape state() const {
    return settings_.batch_first ? SymShape{batch_, directions_, hidden_}
                                 : SymShape{directions_, batch_, hidden_};
  }
  SymShape y() const {
    return settings_.batch_first ? SymShape{batch_, steps_, directions_, hidden_}
                                 : SymShape{steps_, directions_, batch_, hidden_};
  }
  SymShape gates() const {
    const bool known = steps_.is_known() && batch_.is_known();
    const Dim rows = known ? Dim(checked_multiply(steps_.value(), batch_.value())) : Dim();
    return {directions_, rows, times(hidden_, settings_.slots())};
  }
  SymShape states() const {
    const Dim count = steps_.is_known() ? Dim(checked_add(steps_.value(), 1)) : Dim();
    return {directions_, Dim(settings_.states()), count, batch_, hidden_};
  }

 private:
  Dim gate_columns() const { return times(hidden_, settings_.gates()); }

  const RecurrentSettings& settings_;
  Dim directions_;
  Dim steps_;
  Dim batch_;
  Dim input_;
  Dim hidden_;
};

/// Throws Error{shape} if what is known of an input's shape contradicts `wanted`.
void require_recurrent_shape(const InferContext& context, int index, const SymShape& wanted) {
  const SymShape* const found = context.shape(index);
  if (found == nullptr) return;
  bool fits = found->rank() == wanted.rank();
  for (int axis = 0; fits && axis < wanted.rank(); ++axis) {
    fits = !(*found)[axis].is_known() || !wanted[axis].is_known() ||
           (*found)[axis].value() == wanted[axis].value();
  }
  if (!fits) {
    context.fail(ErrorKind::shape, "input ", index, " ('", context.input(index).name(), "') is ",
                 *found, ", wanted ", wanted);
  }
}

void require_float(const InferContext& context, int index) {
  const DType dtype = context.dtype(index);
  if (dtype != DType::undefined && !is_float(dtype)) {
    context.fail(ErrorKind::type, "input '", context.input(index).name(), "' is ", dtype,
                 ", wanted a float type");
  }
}

void require_lengths(const InferContext& context, int index, const Shapes& shapes) {
  require_recurrent_shape(context, index, shapes.lengths());
  const DType dtype = context.dtype(index);
  if (dtype != DType::undefined && dtype != DType::i32) {
    context.fail(ErrorKind::type, "sequence_lens is ", dtype, ", wanted i32");
  }
}

void infer_recurrent(InferContext& context) {
  const RecurrentSettings settings(context.node());
  const Shapes shapes(context, settings, kX, kW, kR);
  context.require_same_dtype({kX, kW, kR, kB, kInitialH, kInitialC, kP});
  require_float(context, kX);
  require_recurrent_shape(context, kX, shapes.x());
  require_recurrent_shape(context, kW, shapes.w());
  require_recurrent_shape(context, kR, shapes.r());
  require_recurrent_shape(context, kB, shapes.b());
  require_lengths(context, kLengths, shapes);
  require_recurrent_shape(context, kInitialH, shapes.state());
  require_recurrent_shape(context, kInitialC, shapes.state());
  require_recurrent_shape(context, kP, shapes.p());
  const DType dtype = context.input(kX).dtype();
  context.set_output(kY, dtype, shapes.y());
  for (int state = 0; state < settings.states(); ++state) {
    context.set_output(kYh + state, dtype, shapes.state());
  }
  if (context.node().domain() != kInternalDomain) return;
  context.set_output(settings.gates_output(), dtype, shapes.gates());
  context.set_output(settings.states_output(), dtype, shapes.states());
}

void infer_recurrent_grad(InferContext& context) {
  const RecurrentSettings settings(context.node());
  const Shapes shapes(context, settings, kGradX, kGradW, kGradR);
  context.require_same_dtype(
      {kGradX, kGradW, kGradR, kGradP, kGradGates, kGradStates, kGradY, kGradYh, kGradYc});
  require_float(context, kGradX);
  require_recurrent_shape(context, kGradX, shapes.x());
  require_recurrent_shape(context, kGradW, shapes.w());
  require_recurrent_shape(context, kGradR, shapes.r());
  require_lengths(context, kGradLengths, shapes);
  require_recurrent_shape(context, kGradP, shapes.p());
  require_recurrent_shape(context, kGradGates, shapes.gates());
  require_recurrent_shape(context, kGradStates, shapes.states());
  require_recurrent_shape(context, kGradY, shapes.y());
  require_recurrent_shape(context, kGradYh, shapes.state());
  require_recurrent_shape(context, kGradYc, shapes.state());
  const DType dtype = context.input(kGradX).dtype();
  context.set_output(kDx, dtype, shapes.x());
  context.set_output(kDw, dtype, shapes.w());
  context.set_output(kDr, dtype, shapes.r());
  context.set_output(kDb, dtype, shapes.b());
  context.set_output(kDinitialH, dtype, shapes.state());
  if (settings.kind != RecurrentKind::lstm) return;
  context.set_output(kDinitialC, dtype, shapes.state());
  context.set_output(kDp, dtype, shapes.p());
}

/// A training step runs the form that keeps gates and states for the gradient.
std::vector<Expr> training_form(const Node& node, Builder& builder) {
  const RecurrentSettings settings(node);
  const Node* const training =
      builder.node(node.op_type() + "Training", kInternalDomain, node.copy_inputs(),
                   settings.states_output() + 1, node.attributes);
  std::vector<Expr> outputs;
  for (int i = 0; i < settings.gates_output(); ++i)
    outputs.push_back(builder.expr(training->output(i)));
  return outputs;
}

std::vector<Expr> recurrent_training_rule(const Gradient& g) {
  const RecurrentSettings settings(g.node());
  const auto gradient_of = [&](int output) {
    return g.has_dy(output) ? g.dy(output).value() : nullptr;
  };
  const bool has_c = settings.kind == RecurrentKind::lstm;
  const std::vector<Value*> inputs{g.node().input(kX),
                                   g.node().input(kW),
                                   g.node().input(kR),
                                   g.node().input(kLengths),
                                   has_c ? g.node().input(kP) : nullptr,
                                   g.y(settings.gates_output()).value(),
                                   g.y(settings.states_output()).value(),
                                   gradient_of(kY),
                                   gradient_of(kYh),
                                   has_c ? gradient_of(kYc) : nullptr};
  // In the order of the gradient op's outputs.
  constexpr std::array<int, 7> kInputs{kX, kW, kR, kB, kInitialH, kInitialC, kP};
  constexpr std::array<std::string_view, 7> kStems{"x",         "w",         "r", "b",
                                                   "initial_h", "initial_c", "p"};
  const std::string kind(g.node().op_type(), 0, g.node().op_type().find("Training"));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kInputs.size(); ++i) {
    const bool wanted = g.node().input(kInputs[i]) != nullptr && g.needs(kInputs[i]);
    names.push_back(wanted ? g.builder().graph().unique_name(text("recurrent_d", kStems[i])) : "");
  }
  const Node* const node =
      g.builder().node(kind + "Grad", kInternalDomain, inputs, names, g.attributes());
  std::vector<Expr> results(kP + 1);
  for (std::size_t i = 0; i < kInputs.size(); ++i) {
    if (Value* const value = node->output(static_cast<int>(i))) {
      at(results, kInputs[i]) = g.builder().expr(value);
    }
  }
  return results;
}

std::vector<AttributeDef> recurrent_attributes(RecurrentKind kind) {
  std::vector<AttributeDef> list{{"activation_alpha", AttributeType::numbers},
                                 {"activation_beta", AttributeType::numbers},
                                 {"activations", AttributeType::texts},
                                 {"clip", AttributeType::number},
                                 {"direction", AttributeType::text},
                                 {"hidden_size", AttributeType::integer},
                                 {"layout", AttributeType::integer}};
  if (kind == RecurrentKind::lstm) list.push_back({"input_forget", AttributeType::integer});
  if (kind == RecurrentKind::gru) list.push_back({"linear_before_reset", AttributeType::integer});
  return list;
}

/// Names of the op, its training form and its gradient.
struct Names {
  std::string_view forward;
  std::string_view training;
  std::string_view gradient;
};

/// Each step of each sample meets all of W and R, `times` times.
template <std::int64_t times>
std::optional<std::int64_t> recurrent_multiply_adds(const Node& node) {
  const std::optional<Shape> x = shape_if_known(node.input(kX));
  const std::optional<Shape> w = shape_if_known(node.input(kW));
  const std::optional<Shape> r = shape_if_known(node.input(kR));
  if (!x || !w || !r || x->rank() != 3) return std::nullopt;
  const std::int64_t weights = checked_add(w->size(), r->size());
  return checked_multiply(times, checked_multiply(x->size(0, 2), weights));
}

template <RecurrentKind kind>
void add_gradient(OpRegistry& registry, std::string_view name) {
  constexpr Arity kOptional = Arity::optional;
  std::vector<Param> gradients{{"dX", kOptional},
                               {"dW", kOptional},
                               {"dR", kOptional},
                               {"dB", kOptional},
                               {"dinitial_h", kOptional}};
  if (kind == RecurrentKind::lstm) {
    gradients.insert(gradients.end(), {{"dinitial_c", kOptional}, {"dP", kOptional}});
  }
  registry.add({.name = name,
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = {{"X"},
                           {"W"},
                           {"R"},
                           {"sequence_lens", kOptional},
                           {"P", kOptional},
                           {"gates"},
                           {"states"},
                           {"dY", kOptional},
                           {"dY_h", kOptional},
                           {"dY_c", kOptional}},
                .outputs = gradients,
                .attributes = recurrent_attributes(kind),
                .infer = infer_recurrent_grad,
                .multiply_adds = recurrent_multiply_adds<2>,
                .backward = NotDifferentiable{"second derivatives of recurrent layers are not "
                                              "supported"},
                .samples = [] { return recurrent_grad_samples(kind); }});
}

template <RecurrentKind kind>
void add_rows(OpRegistry& registry, const Names& names) {
  constexpr bool kHasC = kind == RecurrentKind::lstm;
  constexpr Arity kOptional = Arity::optional;
  std::vector<Param> inputs{{"X"},
                            {"W"},
                            {"R"},
                            {"B", kOptional},
                            {"sequence_lens", kOptional},
                            {"initial_h", kOptional}};
  std::vector<Param> outputs{{"Y", kOptional}, {"Y_h", kOptional}};
  std::vector<int> weights{kW, kR, kB};
  if (kHasC) {
    inputs.insert(inputs.end(), {{"initial_c", kOptional}, {"P", kOptional}});
    outputs.push_back({"Y_c", kOptional});
    weights.push_back(kP);
  }
  registry.add({.name = names.forward,
                .since = {{7}, {14, "layout"}, {22, "bfloat16"}},
                .inputs = inputs,
                .outputs = outputs,
                .attributes = recurrent_attributes(kind),
                .infer = infer_recurrent,
                .weights = weights,
                .multiply_adds = recurrent_multiply_adds<1>,
                .backward = Decomposition{training_form},
                .samples = [] { return recurrent_samples(kind); }});
  outputs.insert(outputs.end(), {{"gates"}, {"states"}});
  registry.add({.name = names.training,
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = inputs,
                .outputs = outputs,
                .attributes = recurrent_attributes(kind),
                .infer = infer_recurrent,
                .weights = weights,
                .multiply_adds = recurrent_multiply_adds<1>,
                .backward = recurrent_training_rule,
                .samples = [] { return recurrent_training_samples(kind); }});
  add_gradient<kind>(registry, names.gradient);
}

}  // namespace

/// LSTM, GRU, RNN (https://onnx.ai/onnx/operators/onnx__LSTM.html and so on). What lies behind the
/// end of a sequence gives outputs of 0; a length outside [0, steps] counts as the nearest in it. A
/// clip limits the inputs of the gates' activations, not that of h(C), as in ONNX Runtime. alpha
/// and beta are taken in order by the functions that have them.
void register_recurrent(OpRegistry& registry) {
  add_rows<RecurrentKind::lstm>(registry, {"LSTM", "LSTMTraining", "LSTMGrad"});
  add_rows<RecurrentKind::gru>(registry, {"GRU", "GRUTraining", "GRUGrad"});
  add_rows<RecurrentKind::rnn>(registry, {"RNN", "RNNTraining", "RNNGrad"});
}

void register_recurrent_kernels(KernelRegistry& registry, std::string_view name,
                                KernelFactory forward, KernelFactory backward, DeviceKind device) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add({.op = op, .domain = domain, .device = device, .name = name, .make = make});
  };
  for (const char* op : {"LSTM", "GRU", "RNN"}) add(op, "", forward);
  for (const char* op : {"LSTMTraining", "GRUTraining", "RNNTraining"}) {
    add(op, kInternalDomain, forward);
  }
  for (const char* op : {"LSTMGrad", "GRUGrad", "RNNGrad"}) add(op, kInternalDomain, backward);
}

}  // namespace graft
