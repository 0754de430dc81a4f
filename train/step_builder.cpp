#include "train/step_builder.h"

#include <algorithm>

#include "autograd/backward.h"
#include "core/ops/registry.h"
#include "optim/update.h"
#include "train/logits.h"

namespace graft {
namespace {

Value* choose_output(const Graph& graph, const std::string& name) {
  if (name.empty()) {
    if (graph.outputs().empty()) fail(ErrorKind::model, "the model has no output");
    return graph.outputs().front();
  }
  std::string valid;
  for (Value* output : graph.outputs()) {
    if (output->name() == name) return output;
    valid += (valid.empty() ? "" : ", ") + output->name();
  }
  fail(ErrorKind::argument, "the model has no output '", name, "'; its outputs: ", valid);
}

/// A gradient as its product wrote it: updates read bf16 themselves.
Expr unwidened(Builder& builder, const Expr& gradient) {
  const Node* const producer = gradient.value()->producer();
  const bool is_wide =
      producer != nullptr && producer->is("Cast") && producer->input(0)->dtype() == DType::bf16;
  return is_wide ? builder.expr(producer->input(0)) : gradient;
}

/// What is judged has at least 32 bits.
Expr widened(const Expr& x) {
  return is_half(x.dtype()) ? cast(x, DType::f32) : x;
}

/// Lets state live on in `state`, on the device, so that every plan works on the same tensors.
void keep(const std::vector<Value*>& values, StateTensors& state, Device& device) {
  for (Value* value : values) {
    const Tensor& wanted = value->initializer();
    auto at = state.find(value->name());
    if (at == state.end()) at = state.emplace(value->name(), wanted.to(device)).first;
    if (at->second.dtype() != wanted.dtype() || at->second.shape() != wanted.shape()) {
      fail(ErrorKind::argument, "the state that was loaded has '", value->name(), "' as ",
           at->second, ", the step keeps ", wanted, ": it is of another optimizer or precision");
    }
    value->set_initializer(at->second);
  }
}

}  // namespace

StepBuilder::StepBuilder(const Model& model, const TrainOptions& options)
    : graph_(model.graph().clone()), options_(options) {
  graph_->set_outputs({choose_output(*graph_, options.output)});
}

void StepBuilder::refuse_open_shapes() const {
  for (const auto& node : graph_->nodes()) {
    for (int i = 0; i < node->output_count(); ++i) {
      const Value* const output = node->output(i);
      if (output == nullptr || (output->shape() && output->shape()->known())) continue;
      const OpDef& def = OpRegistry::instance().get(*node);
      const NotDifferentiable* const refusal = def.is_dynamic ? def.backward.refusal() : nullptr;
      fail(ErrorKind::unsupported, node->label(), ": the shape of '", output->name(), "' (",
           output->type(), ") depends on data, so the model cannot be trained",
           refusal == nullptr ? "" : text(": ", refusal->why));
    }
  }
  const Value& prediction = *graph_->outputs().front();
  if (!prediction.shape() || !prediction.shape()->known()) {
    fail(ErrorKind::unsupported, "the shape of output '", prediction.name(), "' depends on data (",
         prediction.type(), "), so it cannot be trained");
  }
}

bool StepBuilder::add_masters(StateTensors& state) {
  masters_ = graft::add_masters(*graph_, state);
  return !masters_.empty();
}

void StepBuilder::add_loss(const ValueType& target_type) {
  Value* const prediction = graph_->outputs().front();
  Value* const target = graph_->add_input(graph_->unique_name("target"), target_type);
  Builder builder(*graph_, nullptr, "loss/");
  if (const Node* const end = probabilities_of(options_.loss, *prediction)) {
    judged_ = "the logits before " + end->label();
  }
  const Expr scores = widened(builder.expr(scores_of(options_.loss, prediction)));
  const Expr loss = graft::add_loss(options_.loss, scores, builder.expr(target));
  graph_->set_outputs({loss.value(), widened(builder.expr(prediction)).value()});
}

void StepBuilder::add_gradients(const std::vector<std::string>& parameters) {
  builder_.emplace(*graph_, nullptr, "update/");
  Value* const loss = graph_->outputs()[0];
  std::vector<Value*> wanted;
  std::vector<std::string> names;
  for (const std::string& name : parameters) {
    const auto master = std::ranges::find(masters_, name, &Master::parameter);
    Value* const value = master == masters_.end() ? graph_->find(name) : master->value;
    if (value == nullptr) continue;
    wanted.push_back(value);
    names.push_back(name);
  }
  const std::vector<Value*> gradients = autograd::backward(*graph_, {{loss}}, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (gradients[i] == nullptr) continue;
    parameters_.push_back(wanted[i]);
    names_.push_back(names[i]);
    gradients_.push_back(builder_->expr(gradients[i]));
  }
  if (parameters_.empty()) {
    fail(ErrorKind::argument, "output '", graph_->outputs()[1]->name(),
         "' depends on none of the parameters that train");
  }
}

void StepBuilder::add_updates(StepKind kind, const std::vector<Tie>& ties, StateTensors& state) {
  const Expr lr = add_scalar_input("lr", DType::f32);
  const Expr step = add_scalar_input("step", DType::i64);
  const bool has_buffers = kind == StepKind::accumulate || kind == StepKind::apply;
  const std::vector<Expr> buffers = has_buffers ? add_gradient_buffers(state) : std::vector<Expr>();
  if (kind == StepKind::accumulate) {
    accumulate(buffers);
    return write_back(*graph_, masters_);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    gradients_[i] = buffers[i] + gradients_[i] * (1.0 / options_.accumulate);
  }
  gradients_ = clip_gradients(options_.clip, gradients_);
  if (kind == StepKind::gradients) {
    return_gradients();
  } else {
    update(lr, step, ties, state);
  }
  write_back(*graph_, masters_);
  for (const Expr& buffer : buffers) call_internal("Assign", {buffer, zeros_like(buffer)});
}

Expr StepBuilder::add_scalar_input(std::string_view stem, DType dtype) {
  return builder_->expr(graph_->add_input(graph_->unique_name(stem), {dtype, SymShape(Shape{})}));
}

/// One zero-filled buffer a parameter.
std::vector<Expr> StepBuilder::add_gradient_buffers(StateTensors& state) {
  std::vector<Expr> buffers;
  for (const Value* parameter : parameters_) {
    Value* const buffer =
        graph_->add_initializer(graph_->unique_name(parameter->name() + ".accumulated"),
                                Tensor::zeros(parameter->dtype(), parameter->known_shape()));
    buffer->is_variable = true;
    keep({buffer}, state, device(options_.device));
    buffers.push_back(builder_->expr(buffer));
  }
  return buffers;
}

void StepBuilder::accumulate(const std::vector<Expr>& buffers) {
  const double share = 1.0 / options_.accumulate;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    call_internal("Accumulate", {buffers[i], unwidened(*builder_, gradients_[i])},
                  {{"scale", AttributeValue(static_cast<float>(share))}});
  }
}

void StepBuilder::update(const Expr& lr, const Expr& step, const std::vector<Tie>& ties,
                         StateTensors& state) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const AddedUpdate added = add_update(*builder_, *options_.optimizer,
                                         {parameters_[i], unwidened(*builder_, gradients_[i])},
                                         {lr, step}, options_.state_precision);
    keep(added.state, state, device(options_.device));
    for (const Tie& tie : ties) {
      if (tie.leader == names_[i]) update_follower(*graph_, tie, added.parameter);
    }
  }
}

void StepBuilder::return_variables() {
  std::vector<Value*> outputs = graph_->outputs();
  for (const auto& node : graph_->nodes()) {
    for (const Alias& alias : OpRegistry::instance().get(*node).aliases) {
      Value* const variable = node->input(alias.input);
      Value* const content = node->output(alias.output);
      if (alias.kind != AliasKind::state || variable == nullptr || content == nullptr) continue;
      outputs.push_back(content);
      further_outputs_.push_back(variable->name());
    }
  }
  graph_->set_outputs(outputs);
}

void StepBuilder::return_gradients() {
  std::vector<Value*> outputs = graph_->outputs();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    outputs.push_back(gradients_[i].value());
    further_outputs_.push_back(names_[i]);
  }
  graph_->set_outputs(outputs);
}

}  // namespace graft
