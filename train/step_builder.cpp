#include "train/step_builder.h"

#include "autograd/backward.h"
#include "core/ops/registry.h"
#include "optim/update.h"

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

/// Lets state live on in `state`, on the device, so that every plan works on the same tensors.
void keep(const std::vector<Value*>& values, StateTensors& state, Device& device) {
  for (Value* value : values) {
    auto at = state.find(value->name());
    if (at == state.end()) {
      at = state.emplace(value->name(), value->initializer().to(device)).first;
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

void StepBuilder::add_loss(const ValueType& target_type) {
  Value* const prediction = graph_->outputs().front();
  Value* const target = graph_->add_input(graph_->unique_name("target"), target_type);
  Builder builder(*graph_, nullptr, "loss/");
  const Expr loss = graft::add_loss(options_.loss, builder.expr(prediction), builder.expr(target));
  graph_->set_outputs({loss.value(), prediction});
}

void StepBuilder::add_gradients(const std::vector<std::string>& parameters) {
  builder_.emplace(*graph_, nullptr, "update/");
  Value* const loss = graph_->outputs()[0];
  std::vector<Value*> wanted;
  for (const std::string& name : parameters) {
    if (Value* const value = graph_->find(name)) wanted.push_back(value);
  }
  const std::vector<Value*> gradients = autograd::backward(*graph_, {{loss}}, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (gradients[i] == nullptr) continue;
    parameters_.push_back(wanted[i]);
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
  if (kind == StepKind::accumulate) return accumulate(buffers);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    gradients_[i] = buffers[i] + gradients_[i] * (1.0 / options_.accumulate);
  }
  gradients_ = clip_gradients(options_.clip, gradients_);
  if (kind == StepKind::gradients) return return_gradients();
  update(lr, step, ties, state);
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
      if (tie.leader == parameters_[i]->name()) update_follower(*graph_, tie, added.parameter);
    }
  }
}

void StepBuilder::return_gradients() {
  std::vector<Value*> outputs = graph_->outputs();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    outputs.push_back(gradients_[i].value());
    gradient_names_.push_back(parameters_[i]->name());
  }
  graph_->set_outputs(outputs);
}

}  // namespace graft
