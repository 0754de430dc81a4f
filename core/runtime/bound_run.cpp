#include "core/runtime/bound_run.h"

#include "core/runtime/plan.h"

namespace graft {

namespace {

std::vector<Tensor> new_outputs(const Graph& graph, Device& device) {
  std::vector<Tensor> made;
  for (const Value* output : graph.outputs()) {
    made.push_back(Tensor::zeros(output->dtype(), output->known_shape(), device));
  }
  return made;
}

}  // namespace

struct BoundRun::State {
  Plan plan;
  std::vector<Tensor> inputs{};
  std::vector<Tensor> outputs{};
};

BoundRun::BoundRun(std::unique_ptr<Graph> graph, PlanOptions options,
                   const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  options.binds_outputs = true;
  state_ = std::make_unique<State>(Plan(std::move(graph), options));
  bind(inputs, outputs.empty() ? new_outputs(state_->plan.graph(), *options.device) : outputs);
}

BoundRun::~BoundRun() = default;
BoundRun::BoundRun(BoundRun&&) noexcept = default;
BoundRun& BoundRun::operator=(BoundRun&&) noexcept = default;

void BoundRun::run() {
  state_->plan.run_bound();
}

void BoundRun::bind(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  state_->plan.bind(inputs, outputs);
  state_->inputs = inputs;
  state_->outputs = outputs;
}

const std::vector<Tensor>& BoundRun::inputs() const {
  return state_->inputs;
}

const std::vector<Tensor>& BoundRun::outputs() const {
  return state_->outputs;
}

}  // namespace graft
