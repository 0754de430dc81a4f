#include "core/runtime/session.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "core/base/closest.h"
#include "core/graph/find.h"
#include "core/passes/pass.h"
#include "core/runtime/inference.h"
#include "core/runtime/program.h"
#include "core/runtime/recent.h"
#include "core/runtime/residency.h"
#include "core/runtime/segment.h"

namespace graft {
namespace {

std::vector<Tensor> tensors_of(const std::vector<Datum>& data,
                               const std::vector<std::string>& names) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!data[i].is_tensor()) {
      fail(ErrorKind::type, "output '", names[i], "' is ", describe(data[i]), ", not a tensor");
    }
    tensors.push_back(data[i].tensor());
  }
  return tensors;
}

Model with_outputs(const Model& model, const std::vector<std::string>& names) {
  Model copy = model.clone();
  std::vector<Value*> outputs;
  for (const std::string& name : names) {
    outputs.push_back(edit::find_value(copy.graph(), "session", name));
  }
  copy.graph().set_outputs(outputs);
  return copy;
}

/// A graph settled for given inputs, whose copies bound runs plan.
struct Settled {
  std::vector<DatumType> types;
  std::unique_ptr<Graph> graph;
};

}  // namespace

struct Session::State {
  SessionOptions options;
  std::shared_ptr<SharedConstants> constants = std::make_shared<SharedConstants>();
  std::unique_ptr<Graph> graph;  // in inference form
  std::vector<Settled> settled;  // by recent use
  std::optional<Program> program;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::mutex mutex;

  PlanOptions plan_options() const {
    return {.device = options.device, .fallback = options.fallback, .constants = constants};
  }
  std::unique_ptr<Graph> settled_for(const std::vector<Tensor>& inputs);
};

/// Constants are folded once for all bound runs: copies of a graph share the elements of tensors.
std::unique_ptr<Graph> Session::State::settled_for(const std::vector<Tensor>& inputs) {
  const std::scoped_lock lock(mutex);
  const auto accepts = [&](const Settled& one) {
    return std::ranges::equal(inputs, one.types,
                              [](const Tensor& x, const DatumType& type) { return type.fits(x); });
  };
  if (const Settled* const found = find_recent(settled, accepts)) return found->graph->clone();
  Settled made;
  std::vector<ValueType> types;
  for (const Tensor& input : inputs) {
    types.push_back({input.dtype(), SymShape(input.shape())});
    made.types.push_back({true, input.dtype(), input.shape()});
  }
  made.graph = inference_graph(*graph, std::move(types), *options.device);
  if (const Node* const node = first_unplanned(*made.graph)) {
    fail(ErrorKind::unsupported, node->label(),
         ": what it gives depends on data, so no run of this model can be bound; use run");
  }
  return add_recent(settled, std::move(made)).graph->clone();
}

Session::Session(const Model& given, const SessionOptions& options)
    : state_(std::make_unique<State>()) {
  if (options.device == nullptr) {
    fail(ErrorKind::argument, "session: the device is null, wanted one, as cpu()");
  }
  std::optional<Model> changed;
  if (!options.outputs.empty()) changed.emplace(with_outputs(given, options.outputs));
  const Model& model = changed ? *changed : given;
  state_->options = options;
  for (const Value* input : passes::required_inputs(model.graph())) {
    state_->input_names.push_back(input->name());
  }
  for (const Value* output : model.graph().outputs()) {
    state_->output_names.push_back(output->name());
  }
  state_->graph = inference_form(model, options.weights_change).take_graph();
  state_->program.emplace(state_->graph->clone(), state_->plan_options());
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const std::vector<std::string>& Session::input_names() const {
  return state_->input_names;
}

const std::vector<std::string>& Session::output_names() const {
  return state_->output_names;
}

std::vector<Tensor> Session::run(const std::map<std::string, Tensor>& inputs) {
  return tensors_of(run_data(std::map<std::string, Datum>(inputs.begin(), inputs.end())),
                    state_->output_names);
}

std::vector<Tensor> Session::run(const std::vector<Tensor>& inputs) {
  return tensors_of(run_data(std::vector<Datum>(inputs.begin(), inputs.end())),
                    state_->output_names);
}

std::vector<Datum> Session::run_data(const std::map<std::string, Datum>& inputs) {
  for (const auto& [name, datum] : inputs) {
    if (std::ranges::find(state_->input_names, name) == state_->input_names.end()) {
      fail(ErrorKind::argument, "the model has no input '", name,
           "'; its inputs: ", quoted_list(state_->input_names));
    }
  }
  std::vector<Datum> ordered;
  for (const std::string& name : state_->input_names) {
    const auto at = inputs.find(name);
    if (at == inputs.end()) fail(ErrorKind::argument, "no tensor for input '", name, "'");
    ordered.push_back(at->second);
  }
  return run_data(ordered);
}

std::vector<Datum> Session::run_data(const std::vector<Datum>& inputs) {
  const std::scoped_lock lock(state_->mutex);
  std::vector<Datum> data;
  for (const Datum& input : inputs) {
    data.push_back(input.is_tensor() ? Datum(input.tensor().to(cpu())) : input);
  }
  return state_->program->run(data);
}

BoundRun Session::bind(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  return BoundRun(state_->settled_for(inputs), state_->plan_options(), inputs, outputs);
}

void Session::set_weights(const std::map<std::string, Tensor>& weights) {
  if (!state_->options.weights_change) {
    fail(ErrorKind::argument,
         "this session has made its plans of the weights; one that takes "
         "others is made with SessionOptions::weights_change");
  }
  const std::scoped_lock lock(state_->mutex);
  std::vector<Tensor> targets;
  for (const auto& [name, tensor] : weights) {
    const Value* const value = state_->graph->find(name);
    if (value == nullptr || !value->is_variable) {
      fail(ErrorKind::argument, "'", name,
           "' is no weight that may change: a float initializer of "
           "the model that is no scalar");
    }
    const Tensor& target = value->initializer();
    if (tensor.dtype() != target.dtype() || tensor.shape() != target.shape()) {
      fail(ErrorKind::shape, "weight '", name, "' is ", describe(target), ", got ",
           describe(tensor));
    }
    targets.push_back(target);
  }
  auto target = targets.begin();
  for (const auto& [name, tensor] : weights) (target++)->copy_from(tensor);
}

}  // namespace graft
