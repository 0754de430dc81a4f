#include <algorithm>

#include "core/passes/pass.h"
#include "core/runtime/session.h"
#include "io/onnx.h"
#include "tools/graft/test_case.h"
#include "train/gradient_model.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const bool has_name = entry.path().filename().string().starts_with("test_data_set_");
    if (entry.is_directory() && has_name) sets.push_back(entry.path());
  }
  std::ranges::sort(sets);
  return sets;
}

/// Gives the model's inputs the tensors: those which are named like an input by name, others by
/// place. An input with a default value takes the tensor as its new default.
/// Returns what the required inputs get.
std::vector<Datum> feed(Model& model, const std::vector<NamedDatum>& data) {
  const std::vector<Value*> required = passes::required_inputs(model.graph());
  const std::vector<Value*>& places =
      data.size() == required.size() ? required : model.graph().inputs();
  std::map<const Value*, Datum> given;
  for (std::size_t i = 0; i < data.size(); ++i) {
    Value* target = data[i].name.empty() ? nullptr : model.graph().find(data[i].name);
    if (target == nullptr || !target->is_graph_input()) {
      if (i >= places.size()) {
        fail(ErrorKind::argument, "the model has ", places.size(), " inputs, the test gives ",
             data.size());
      }
      target = places[i];
    }
    if (target->is_initializer()) {
      target->set_initializer(data[i].datum.tensor());
    } else {
      given[target] = data[i].datum;
    }
  }
  std::vector<Datum> inputs;
  for (const Value* input : required) {
    const auto at = given.find(input);
    if (at == given.end()) {
      fail(ErrorKind::argument, "the test gives no input '", input->name(), "'");
    }
    inputs.push_back(at->second);
  }
  return inputs;
}

struct Answer {
  std::vector<std::string> names;
  std::vector<Datum> outputs;
};

Answer compute(const Model& model, const std::vector<NamedDatum>& data,
               const ComputeArguments& arguments) {
  Model fed = model.clone();
  const std::vector<Datum> inputs = feed(fed, data);
  Session session(model_with_gradients(fed, inputs),
                  {.device = &device(arguments.device), .fallback = arguments.fallback});
  return {session.output_names(), session.run_data(inputs)};
}

/// <stem>0.pb, <stem>1.pb, ...: data of the kinds that the model's values have.
std::vector<NamedDatum> load_data(const fs::path& folder, const std::string& stem,
                                  const std::vector<Value*>& values) {
  std::vector<NamedDatum> data;
  for (std::size_t i = 0;; ++i) {
    const fs::path path = folder / (stem + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return data;
    if (i >= values.size()) {
      fail(ErrorKind::argument, "the model has no value for ", path.string());
    }
    data.push_back(onnx::load_data(path, *values[i]));
  }
}

}  // namespace

CaseResult failed(std::string reason) {
  return {CaseResult::Outcome::failed, std::move(reason)};
}

std::vector<NamedTensor> load_numbered(const fs::path& folder, const std::string& stem) {
  std::vector<NamedTensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path path = folder / (stem + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return tensors;
    tensors.push_back(onnx::load_tensor(path));
  }
}

std::vector<Tensor> tensors_of(std::vector<NamedTensor> named) {
  std::vector<Tensor> tensors;
  for (NamedTensor& one : named) tensors.push_back(std::move(one.tensor));
  return tensors;
}

CaseResult run_backend_case(const fs::path& folder, const ComputeArguments& arguments,
                            const Tolerance& tolerance) {
  const Model model = onnx::load(folder / "model.onnx");
  CaseResult result{CaseResult::Outcome::skipped, "it has no expected output"};
  for (const fs::path& set : data_sets(folder)) {
    const std::vector<NamedDatum> wanted = load_data(set, "output_", model.graph().outputs());
    if (wanted.empty()) continue;
    const Answer found =
        compute(model, load_data(set, "input_", model.graph().inputs()), arguments);
    if (wanted.size() > found.outputs.size()) {
      return failed(
          text("the test wants ", wanted.size(), " outputs, the model has ", found.outputs.size()));
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::string different = difference("output '" + found.names[i] + "'", found.outputs[i],
                                               wanted[i].datum, tolerance);
      if (!different.empty()) return failed(set.filename().string() + ": " + different);
    }
    result = {CaseResult::Outcome::passed, ""};
  }
  return result;
}

}  // namespace graft::cli
