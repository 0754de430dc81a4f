#include "core/runtime/session.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "core/passes/pass.h"
#include "core/runtime/inference.h"
#include "core/runtime/program.h"

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

}  // namespace

struct Session::State {
  std::optional<Program> program;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::mutex mutex;
};

Session::Session(const Model& model, const SessionOptions& options)
    : state_(std::make_unique<State>()) {
  for (const Value* input : passes::required_inputs(model.graph())) {
    state_->input_names.push_back(input->name());
  }
  for (const Value* output : model.graph().outputs()) {
    state_->output_names.push_back(output->name());
  }
  state_->program.emplace(inference_form(model, options.weights_change).take_graph(),
                          PlanOptions{.device = options.device, .fallback = options.fallback});
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
      std::string valid;
      for (const auto& input : state_->input_names) valid += (valid.empty() ? "" : ", ") + input;
      fail(ErrorKind::argument, "the model has no input '", name, "'; its inputs: ", valid);
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

}  // namespace graft
