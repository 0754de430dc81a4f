#include "core/runtime/session.h"

#include <algorithm>
#include <mutex>

#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "core/runtime/recent.h"

namespace graft {
struct Session::State {
  Model model;
  SessionOptions options;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::vector<Plan> plans;
  std::mutex mutex;

  Plan& plan_for(const std::vector<Tensor>& inputs);
};

Plan& Session::State::plan_for(const std::vector<Tensor>& inputs) {
  const auto accepts = [&](const Plan& plan) { return plan.accepts(inputs); };
  if (Plan* const plan = find_recent(plans, accepts)) return *plan;
  std::unique_ptr<Graph> graph = model.graph().clone();
  std::vector<ValueType> types;
  for (const Tensor& input : inputs) types.push_back({input.dtype(), SymShape(input.shape())});
  passes::bind_inputs(*graph, types);
  passes::settle(*graph);
  if (passes::decompose_where_needed(*graph, *options.device)) passes::settle(*graph);
  return add_recent(plans, Plan(std::move(graph), {.device = options.device}));
}

Session::Session(const Model& model, const SessionOptions& options)
    : state_(std::make_unique<State>()) {
  state_->model = model.clone();
  state_->options = options;
  passes::upgrade_opset(state_->model);
  for (const Value* output : state_->model.graph().outputs()) {
    state_->output_names.push_back(output->name());
  }
  passes::inference_mode(state_->model.graph());
  const Graph& graph = state_->model.graph();
  for (Value* initializer : graph.initializers()) {
    initializer->is_variable = options.weights_change && is_float(initializer->dtype()) &&
                               initializer->initializer().rank() > 0;
  }
  for (const Value* input : passes::required_inputs(graph)) {
    state_->input_names.push_back(input->name());
  }
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
  for (const auto& [name, tensor] : inputs) {
    if (std::ranges::find(state_->input_names, name) == state_->input_names.end()) {
      std::string valid;
      for (const auto& input : state_->input_names) valid += (valid.empty() ? "" : ", ") + input;
      fail(ErrorKind::argument, "the model has no input '", name, "'; its inputs: ", valid);
    }
  }
  std::vector<Tensor> ordered;
  for (const std::string& name : state_->input_names) {
    const auto at = inputs.find(name);
    if (at == inputs.end()) fail(ErrorKind::argument, "no tensor for input '", name, "'");
    ordered.push_back(at->second);
  }
  return run(ordered);
}

std::vector<Tensor> Session::run(const std::vector<Tensor>& inputs) {
  const std::scoped_lock lock(state_->mutex);
  std::vector<Tensor> on_device;
  for (const Tensor& input : inputs) on_device.push_back(input.to(*state_->options.device));
  Plan& plan = state_->plan_for(on_device);
  plan.run(on_device);
  std::vector<Tensor> outputs;
  for (int i = 0; i < plan.output_count(); ++i) {
    // Copy even on the CPU: the plan's memory is overwritten by the next run.
    outputs.push_back(plan.output(i).clone().to(cpu()));
  }
  return outputs;
}

}  // namespace graft
