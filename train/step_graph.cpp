// clone -> bind shapes -> training form -> loss -> backward -> clip -> update. Each stage adds
// nodes to one graph; start by looking at `build_step_graph`.
#include "train/step_graph.h"

#include "autograd/backward.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "optim/update.h"

namespace graft {
namespace {

/// A step is one plan, so it holds no node whose shapes depend on data, wherever it stands.
void refuse_open_shapes(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
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
}

/// The model for given input shapes, and the loss of one of its outputs.
class LossBuilder {
 public:
  LossBuilder(const Model& model, const Loss& loss, const std::string& output)
      : graph_(model.graph().clone()), loss_options_(loss), output_(output) {}

  void bind(const std::vector<ValueType>& input_types) {
    passes::bind_inputs(*graph_, input_types);
    prediction_ = choose_output();
    graph_->set_outputs({prediction_});
    passes::settle(*graph_);
    while (passes::unroll_loops(*graph_)) passes::settle(*graph_);
    prediction_ = graph_->outputs().front();
    refuse_open_shapes(*graph_);
    if (!prediction_->shape() || !prediction_->shape()->known()) {
      fail(ErrorKind::unsupported, "the shape of output '", prediction_->name(),
           "' depends on data (", prediction_->type(), "), so it cannot be trained");
    }
  }

  void add_loss_node(const ValueType& target_type) {
    Value* const target = graph_->add_input(graph_->unique_name("target"), target_type);
    Builder builder(*graph_, nullptr, "loss/");
    loss_ = add_loss(loss_options_, builder.expr(prediction_), builder.expr(target)).value();
    graph_->set_outputs({loss_, prediction_});
    passes::decompose(*graph_);
    passes::split_stacks(*graph_);
    passes::fuse_attention(*graph_);
    passes::skip_row_transposes(*graph_);
    passes::fuse_layer_norm(*graph_);
    passes::name_activations(*graph_);
    passes::pool_before_relu(*graph_);
    loss_ = graph_->outputs()[0];
    prediction_ = graph_->outputs()[1];
  }

  std::unique_ptr<Graph> finish_evaluation() {
    passes::fuse_feed_forward(*graph_);
    passes::settle(*graph_);
    return std::move(graph_);
  }

 protected:
  std::unique_ptr<Graph> graph_;
  Value* prediction_ = nullptr;
  Value* loss_ = nullptr;

 private:
  Value* choose_output() const {
    if (output_.empty()) {
      if (graph_->outputs().empty()) fail(ErrorKind::model, "the model has no output");
      return graph_->outputs().front();
    }
    std::string valid;
    for (Value* output : graph_->outputs()) {
      if (output->name() == output_) return output;
      valid += (valid.empty() ? "" : ", ") + output->name();
    }
    fail(ErrorKind::argument, "the model has no output '", output_, "'; its outputs: ", valid);
  }

  const Loss& loss_options_;
  const std::string& output_;
};

/// A gradient as its product wrote it: updates read bf16 themselves.
Expr unwidened(Builder& builder, const Expr& gradient) {
  const Node* const producer = gradient.value()->producer();
  const bool is_wide =
      producer != nullptr && producer->is("Cast") && producer->input(0)->dtype() == DType::bf16;
  return is_wide ? builder.expr(producer->input(0)) : gradient;
}

/// Turns that into a training step.
class StepBuilder : public LossBuilder {
 public:
  StepBuilder(const Model& model, const TrainOptions& options, StateTensors& state)
      : LossBuilder(model, options.loss, options.output), options_(options), state_(state) {}

  void make_training_form() {
    passes::train_mode(*graph_, options_.seed);
    passes::decompose(*graph_);
    prediction_ = graph_->outputs().front();
  }

  void choose_precision() {
    if (options_.precision == Precision::bf16) {
      passes::compute_in_bf16(*graph_);
    } else {
      passes::fuse_feed_forward(*graph_);
    }
    passes::keep_argmax(*graph_);
    loss_ = graph_->outputs()[0];
    prediction_ = graph_->outputs()[1];
  }

  void add_backward(const std::vector<std::string>& parameters) {
    std::vector<Value*> wanted;
    for (const std::string& name : parameters) {
      if (Value* const value = graph_->find(name)) wanted.push_back(value);
    }
    const std::vector<Value*> gradients = autograd::backward(*graph_, {{loss_}}, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (gradients[i] == nullptr) continue;
      parameters_.push_back(wanted[i]);
      gradients_.push_back(update_builder_->expr(gradients[i]));
    }
    if (parameters_.empty()) {
      fail(ErrorKind::argument, "output '", prediction_->name(),
           "' depends on none of the parameters that train");
    }
  }

  void add_updates(StepKind kind, const std::vector<Tie>& ties) {
    const Expr lr = add_scalar_input("lr", DType::f32);
    const Expr step = add_scalar_input("step", DType::i64);
    const std::vector<Expr> buffers = kind == StepKind::accumulate || kind == StepKind::apply
                                          ? gradient_buffers()
                                          : std::vector<Expr>();
    const double share = 1.0 / options_.accumulate;
    if (kind == StepKind::accumulate) {
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        call_internal("Accumulate", {buffers[i], unwidened(*update_builder_, gradients_[i])},
                      {{"scale", AttributeValue(static_cast<float>(share))}});
      }
      return;
    }
    if (kind == StepKind::apply) {
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        gradients_[i] = buffers[i] + gradients_[i] * share;
      }
    }
    gradients_ = clip_gradients(options_.clip, gradients_);
    if (kind == StepKind::gradients) return;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const AddedUpdate added =
          add_update(*update_builder_, *options_.optimizer,
                     {parameters_[i], unwidened(*update_builder_, gradients_[i])}, {lr, step},
                     options_.state_precision);
      keep(added.state);
      for (const Tie& tie : ties) {
        if (tie.leader == parameters_[i]->name()) update_follower(*graph_, tie, added.parameter);
      }
    }
    for (const Expr& buffer : buffers) call_internal("Assign", {buffer, zeros_like(buffer)});
  }

  StepGraph finish(StepKind kind) {
    StepGraph result;
    std::vector<Value*> outputs{loss_, prediction_};
    if (kind == StepKind::gradients) {
      for (std::size_t i = 0; i < parameters_.size(); ++i) {
        outputs.push_back(gradients_[i].value());
        result.gradient_names.push_back(parameters_[i]->name());
      }
    }
    graph_->set_outputs(outputs);
    passes::settle(*graph_);
    passes::fuse_activations(*graph_);
    passes::add_in_products(*graph_);
    passes::fuse_product_updates(*graph_);
    result.graph = std::move(graph_);
    return result;
  }

  void start_updates() { update_builder_.emplace(*graph_, nullptr, "update/"); }

 private:
  Expr add_scalar_input(std::string_view stem, DType dtype) {
    return update_builder_->expr(
        graph_->add_input(graph_->unique_name(stem), {dtype, SymShape(Shape{})}));
  }

  /// One zero-filled buffer a parameter.
  std::vector<Expr> gradient_buffers() {
    std::vector<Expr> buffers;
    for (const Value* parameter : parameters_) {
      Value* const buffer =
          graph_->add_initializer(graph_->unique_name(parameter->name() + ".accumulated"),
                                  Tensor::zeros(parameter->dtype(), parameter->known_shape()));
      buffer->is_variable = true;
      keep({buffer});
      buffers.push_back(update_builder_->expr(buffer));
    }
    return buffers;
  }

  /// Lets state live on in `state_`, so that every plan works on the same tensors.
  void keep(const std::vector<Value*>& values) {
    for (Value* value : values) {
      const auto [at, is_new] = state_.try_emplace(value->name(), value->initializer());
      if (!is_new) value->set_initializer(at->second);
    }
  }

  const TrainOptions& options_;
  StateTensors& state_;
  std::optional<Builder> update_builder_;
  std::vector<Value*> parameters_;
  std::vector<Expr> gradients_;
};

}  // namespace

StepGraph build_step_graph(const Model& model, const TrainOptions& options, const Trained& trained,
                           const std::vector<ValueType>& input_types, const ValueType& target_type,
                           StepKind kind, StateTensors& state) {
  StepBuilder builder(model, options, state);
  builder.bind(input_types);
  builder.make_training_form();
  builder.add_loss_node(target_type);
  builder.choose_precision();
  builder.start_updates();
  builder.add_backward(trained.parameters);
  builder.add_updates(kind, trained.ties);
  return builder.finish(kind);
}

std::unique_ptr<Graph> build_evaluation_graph(const Model& model, const Loss& loss,
                                              const std::string& output,
                                              const std::vector<ValueType>& input_types,
                                              const ValueType& target_type) {
  LossBuilder builder(model, loss, output);
  builder.bind(input_types);
  builder.add_loss_node(target_type);
  return builder.finish_evaluation();
}

}  // namespace graft
