#include <nlohmann/json.hpp>

#include "core/runtime/session.h"
#include "io/file.h"
#include "io/onnx.h"
#include "tools/graft/compare.h"
#include "tools/graft/test_case.h"
#include "train/train_step.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

/// training.json.
struct Record {
  Loss loss;
  Optimizer optimizer;
  int steps = 0;
  std::vector<std::string> trainable;
  std::vector<std::vector<std::string>> tied;
  std::vector<double> losses;
  Tolerance tolerance;
};

float number_of(const nlohmann::json& value) {
  return value.is_boolean() ? static_cast<float>(value.get<bool>()) : value.get<float>();
}

/// Settings go by PyTorch's names.
void take_setting(Optimizer& optimizer, const std::string& key, const nlohmann::json& value) {
  if (key == "lr") {
    set_learning_rate(optimizer, number_of(value));
  } else if (key == "betas") {
    set_setting(optimizer, "beta1", number_of(value.at(0)));
    set_setting(optimizer, "beta2", number_of(value.at(1)));
  } else {
    set_setting(optimizer, key == "eps" ? "epsilon" : key, number_of(value));
  }
}

Optimizer optimizer_from_json(const nlohmann::json& settings) {
  Optimizer optimizer = optimizer_from_name(settings.at("type").get<std::string>());
  for (const auto& [key, value] : settings.items()) {
    if (key != "type") take_setting(optimizer, key, value);
  }
  return optimizer;
}

Record read_record(const fs::path& path) {
  constexpr std::uint64_t kMostBytes = 1 << 26;
  try {
    const nlohmann::json json = nlohmann::json::parse(read_file(path, kMostBytes));
    Record record;
    record.loss = loss_from_name(json.at("loss").get<std::string>());
    record.optimizer = optimizer_from_json(json.at("optimizer"));
    record.steps = json.at("steps").get<int>();
    record.trainable = json.at("trainable").get<std::vector<std::string>>();
    record.tied = json.value("tied", record.tied);
    record.losses = json.at("losses").get<std::vector<double>>();
    record.tolerance = {json.at("rtol").get<double>(), json.at("atol").get<double>()};
    if (record.steps < 1 || record.losses.size() != static_cast<std::size_t>(record.steps)) {
      fail(ErrorKind::io, path.string(), ": ", record.losses.size(), " losses for ", record.steps,
           " steps");
    }
    return record;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::io, path.string(), ": ", error.what());
  }
}

/// One recorded run, compared as it is done again.
class TrainingCase {
 public:
  TrainingCase(const fs::path& folder, ComputeArguments arguments)
      : folder_(folder),
        data_(folder / "test_data_set_0"),
        arguments_(std::move(arguments)),
        record_(read_record(folder / "training.json")) {}

  /// The first difference; empty when there is none.
  std::string run() {
    Model model = onnx::load(folder_ / "model.onnx");
    std::string found = compare_output(model, "output_0.pb", "output before training");
    if (found.empty()) found = compare_gradients();
    if (found.empty()) found = compare_losses(model);
    if (found.empty()) found = compare_output(model, "trained_output_0.pb", "trained output");
    return found;
  }

 private:
  std::string compare_output(const Model& model, const char* file, std::string_view what) const {
    Session session(model, {.device = &device(arguments_.device), .fallback = arguments_.fallback});
    const std::vector<Tensor> outputs = session.run(tensors_of(load_numbered(data_, "input_")));
    if (outputs.empty()) fail(ErrorKind::model, folder_.string(), ": the model has no output");
    return difference(what, outputs.front(), onnx::load_tensor(data_ / file).tensor,
                      record_.tolerance);
  }

  /// On a model of its own: a step moves running statistics.
  std::string compare_gradients() const {
    Model model = onnx::load(folder_ / "model.onnx");
    TrainOptions options = make_options();
    options.optimizer.reset();
    TrainStep step(model, options);
    run_step(step, 0);
    const std::map<std::string, Tensor> found = step.gradients();
    for (const NamedTensor& wanted : load_numbered(data_, "gradient_")) {
      const auto at = found.find(wanted.name);
      if (at == found.end()) return "no gradient of '" + wanted.name + "'";
      const std::string different = difference("gradient of '" + wanted.name + "'", at->second,
                                               wanted.tensor, record_.tolerance);
      if (!different.empty()) return different;
    }
    return {};
  }

  std::string compare_losses(Model& model) const {
    TrainStep step(model, make_options());
    for (int i = 0; i < record_.steps; ++i) {
      const std::string different =
          difference(text("loss of step ", i), run_step(step, i),
                     record_.losses[static_cast<std::size_t>(i)], record_.tolerance);
      if (!different.empty()) return different;
    }
    return {};
  }

  TrainOptions make_options() const {
    TrainOptions options;
    options.loss = record_.loss;
    options.optimizer = record_.optimizer;
    options.parameters = record_.trainable;
    options.tied = record_.tied;
    options.device = arguments_.device;
    options.fallback = arguments_.fallback;
    return options;
  }

  float run_step(TrainStep& step, int index) const {
    const std::string stem = text("step_", index, "_");
    return step.run(tensors_of(load_numbered(data_, stem + "input_")),
                    onnx::load_tensor(data_ / (stem + "target_0.pb")).tensor);
  }

  fs::path folder_;
  fs::path data_;
  ComputeArguments arguments_;
  Record record_;
};

}  // namespace

CaseResult run_training_case(const fs::path& folder, const ComputeArguments& arguments) {
  std::string different = TrainingCase(folder, arguments).run();
  return different.empty() ? CaseResult{} : failed(std::move(different));
}

}  // namespace graft::cli
