#include "train/step_builder.h"

#include <algorithm>

#include "autograd/backward.h"
#include "core/ops/registry.h"
#include "optim/state_names.h"
#include "train/averages.h"
#include "train/data_parallel.h"
#include "train/judged.h"
#include "train/logits.h"

namespace graft {
namespace {

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

StepBuilder::StepBuilder(const Model& model, const TrainOptions& options, std::size_t inputs,
                         std::size_t targets)
    : graph_(model.graph().clone()), options_(options) {
  const std::vector<Value*> labels =
      inputs_for_targets(*graph_, options.loss, options.output, inputs, targets);
  JudgedOutputs chosen = choose_outputs(*graph_, options.loss, options.output);
  graph_->set_outputs(chosen.outputs);
  judged_outputs_ = std::move(chosen.judged);
  model_takes_targets_ = !labels.empty();
  move_inputs_to_end(*graph_, labels);
}

std::vector<ValueType> StepBuilder::input_types(std::vector<ValueType> inputs,
                                                const std::vector<ValueType>& targets) const {
  if (model_takes_targets_) inputs.insert(inputs.end(), targets.begin(), targets.end());
  return inputs;
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
  for (const Value* output : graph_->outputs()) {
    if (output->shape() && output->shape()->known()) continue;
    fail(ErrorKind::unsupported, "the shape of output '", output->name(), "' depends on data (",
         output->type(), "), so it cannot be trained");
  }
}

bool StepBuilder::add_masters(StateTensors& state) {
  masters_ = graft::add_masters(*graph_, state);
  return !masters_.empty();
}

void StepBuilder::add_targets(const std::vector<ValueType>& types) {
  if (model_takes_targets_) return;
  for (const ValueType& type : types) {
    targets_.push_back(graph_->add_input(graph_->unique_name("target"), type));
  }
}

/// The model's own loss.
void StepBuilder::take_graph_loss() {
  Value* const loss = graph_->outputs()[judged_outputs_.front()];
  if (!is_float(loss->dtype()) || loss->known_shape().size() != 1) {
    fail(ErrorKind::shape, "the loss of the model, '", loss->name(), "', is ", loss->type(),
         ", wanted one float: take a mean or a sum of it in the model");
  }
  Builder builder(*graph_, nullptr, "loss/");
  const Expr scalar = reshape(widened(builder.expr(loss)), Shape{});
  const Expr prediction = widened(builder.expr(graph_->outputs().front()));
  classes_.push_back(0);
  graph_->set_outputs({scalar.value(), prediction.value()});
}

/// What the loss judges of output `index` of those that it names.
Expr StepBuilder::score_of(std::size_t index, Builder& builder) {
  const Loss& loss = part_of(options_.loss, index);
  Value* const output = graph_->outputs()[judged_outputs_[index]];
  if (const Node* const end = probabilities_of(loss, *output)) {
    judged_ += text(judged_.empty() ? "" : ", ", "the logits before ", end->label());
  }
  classes_.push_back(class_count(loss, output->known_shape()));
  return widened(builder.expr(scores_of(loss, output)));
}

void StepBuilder::add_loss(const std::vector<ValueType>& types) {
  add_targets(types);
  if (is_in_graph(options_.loss)) return take_graph_loss();
  Builder builder(*graph_, nullptr, "loss/");
  std::vector<Expr> scores;
  for (std::size_t i = 0; i < judged_outputs_.size(); ++i) scores.push_back(score_of(i, builder));
  std::vector<Expr> targets;
  for (Value* target : targets_) targets.push_back(builder.expr(target));
  const Expr loss = graft::add_loss(options_.loss, scores, targets);
  const Expr prediction = widened(builder.expr(graph_->outputs().front()));
  graph_->set_outputs({loss.value(), prediction.value()});
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
         "' depends on none of the parameters that train, or its loss does by ops that have no "
         "gradient");
  }
}

void StepBuilder::add_updates(StepKind kind, const Trained& trained, StateTensors& state) {
  std::vector<UpdateInputs> clocks;
  for (std::size_t i = 0; i < trained.updates.clocks.size(); ++i) {
    const Expr lr = add_scalar_input("lr", DType::f32);
    clocks.push_back({lr, add_scalar_input("step", DType::i64)});
  }
  const bool has_buffers = kind == StepKind::accumulate || kind == StepKind::apply;
  const std::vector<Expr> buffers = has_buffers ? add_gradient_buffers(state) : std::vector<Expr>();
  if (kind == StepKind::accumulate) {
    accumulate(buffers);
    return write_back(*graph_, masters_);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    gradients_[i] = buffers[i] + gradients_[i] * (1.0 / options_.accumulate);
  }
  const Communicator& ranks = or_alone(options_.communicator);
  if (ranks.size() > 1 && (options_.sync_every == 1 || kind == StepKind::gradients)) {
    const Means means = mean_over_ranks(gradients_, builder_->expr(graph_->outputs().front()),
                                        ranks, options_.wire_precision);
    gradients_ = means.gradients;
    // A rank that updates none of the last gradients would leave their message out.
    if (!trained.owners.empty()) graph_->add_output(means.last.value());
  }
  gradients_ = clip_gradients(options_.clip, gradients_);
  if (kind == StepKind::gradients) {
    return_gradients();
  } else {
    update(clocks, trained, state);
  }
  write_back(*graph_, masters_);
  if (kind != StepKind::gradients && options_.ema > 0.0F) {
    keep(add_averages(*graph_, masters_, clocks.front().step, options_.ema, state), state,
         device(options_.device));
  }
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
        graph_->add_initializer(graph_->unique_name(text(parameter->name(), '.', kAccumulated)),
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

void StepBuilder::update(const std::vector<UpdateInputs>& clocks, const Trained& trained,
                         StateTensors& state) {
  const int rank = or_alone(options_.communicator).rank();
  const std::vector<const UpdateGroup*> groups = trained.updates.find_all(names_);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto owner = trained.owners.find(names_[i]);
    if (owner != trained.owners.end() && owner->second != rank) continue;
    const UpdateGroup* const group = groups[i];
    Optimizer optimizer = *options_.optimizer;
    if (group != nullptr && group->weight_decay) set_weight_decay(optimizer, *group->weight_decay);
    const std::size_t clock = group == nullptr ? 0 : trained.updates.clock_of(*group);
    const AddedUpdate added =
        add_update(*builder_, optimizer, {parameters_[i], unwidened(*builder_, gradients_[i])},
                   clocks[clock], options_.state_precision);
    keep(added.state, state, device(options_.device));
    for (const Tie& tie : trained.ties) {
      if (tie.leader == names_[i]) update_follower(*graph_, tie, added.parameter);
    }
  }
}

bool StepBuilder::count_correct() {
  if (!has_class_targets(options_.loss)) return false;
  Builder builder(*graph_, nullptr, "count/");
  std::vector<Value*> outputs = graph_->outputs();
  const Expr prediction = builder.expr(outputs[1]);
  const std::int64_t axis = class_axis(options_.loss, prediction.shape());
  const Expr count = call_internal(
      "CountCorrect", {prediction, builder.expr(targets_.front())},
      {{"axis", axis}, {"ignore_index", part_of(options_.loss, 0).ignore_index.value_or(-1)}});
  outputs.push_back(count.value());
  graph_->set_outputs(outputs);
  return true;
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
