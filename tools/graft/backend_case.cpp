#include "core/runtime/session.h"
#include "io/onnx.h"
#include "tools/graft/data_set.h"
#include "tools/graft/test_case.h"
#include "train/gradient_model.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

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
