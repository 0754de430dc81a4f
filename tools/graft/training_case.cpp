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
using Json = nlohmann::json;

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

/// Sets `field` from the setting, if it is there, and takes it out of `settings`.
void take(Json& settings, const char* key, float& field) {
  const auto at = settings.find(key);
  if (at == settings.end()) return;
  field = at->get<float>();
  settings.erase(at);
}

void take_betas(Json& settings, float& beta1, float& beta2) {
  const auto at = settings.find("betas");
  if (at == settings.end()) return;
  beta1 = at->at(0).get<float>();
  beta2 = at->at(1).get<float>();
  settings.erase(at);
}

// Settings go by PyTorch's names.
void take_own(Json& settings, SGD& sgd) {
  take(settings, "momentum", sgd.momentum);
  take(settings, "dampening", sgd.dampening);
  sgd.nesterov = settings.value("nesterov", false);
  settings.erase("nesterov");
}
void take_own(Json& settings, Adam& adam) {
  take_betas(settings, adam.beta1, adam.beta2);
  take(settings, "eps", adam.epsilon);
}
void take_own(Json& settings, AdamW& adam) {
  take_betas(settings, adam.beta1, adam.beta2);
  take(settings, "eps", adam.epsilon);
}
void take_own(Json& settings, RMSprop& rmsprop) {
  take(settings, "alpha", rmsprop.alpha);
  take(settings, "eps", rmsprop.epsilon);
  take(settings, "momentum", rmsprop.momentum);
  rmsprop.centered = settings.value("centered", false);
  settings.erase("centered");
}
void take_own(Json& settings, Adagrad& adagrad) {
  take(settings, "lr_decay", adagrad.lr_decay);
  take(settings, "eps", adagrad.epsilon);
}
void take_own(Json& /*settings*/, CustomOptimizer& /*formula*/) {}  // has no name in a record

Optimizer parse_optimizer(Json settings) {
  Optimizer optimizer = optimizer_from_name(settings.at("type").get<std::string>());
  settings.erase("type");
  std::visit(
      [&](auto& chosen) {
        take(settings, "lr", chosen.lr);
        if constexpr (requires { chosen.weight_decay; }) {
          take(settings, "weight_decay", chosen.weight_decay);
        }
        take_own(settings, chosen);
      },
      optimizer);
  if (!settings.empty()) {
    fail(ErrorKind::unsupported, "optimizer setting '", settings.begin().key(), "' is not known");
  }
  return optimizer;
}

Record read_record(const fs::path& path) {
  constexpr std::uint64_t kMostBytes = 1 << 26;
  try {
    const Json json = Json::parse(read_file(path, kMostBytes));
    Record record;
    record.loss = loss_from_name(json.at("loss").get<std::string>());
    record.optimizer = parse_optimizer(json.at("optimizer"));
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
  } catch (const Json::exception& error) {
    fail(ErrorKind::io, path.string(), ": ", error.what());
  }
}

/// One recorded run, compared as it is done again.
class TrainingCase {
 public:
  TrainingCase(const fs::path& folder, std::string device)
      : folder_(folder),
        data_(folder / "test_data_set_0"),
        device_(std::move(device)),
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
    Session session(model, {.device = &device(device_)});
    const std::vector<Tensor> outputs = session.run(tensors_of(load_numbered(data_, "input_")));
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
    options.device = device_;
    return options;
  }

  float run_step(TrainStep& step, int index) const {
    const std::string stem = text("step_", index, "_");
    return step.run(tensors_of(load_numbered(data_, stem + "input_")),
                    onnx::load_tensor(data_ / (stem + "target_0.pb")).tensor);
  }

  fs::path folder_;
  fs::path data_;
  std::string device_;
  Record record_;
};

}  // namespace

CaseResult run_training_case(const fs::path& folder, const std::string& device) {
  std::string different = TrainingCase(folder, device).run();
  return different.empty() ? CaseResult{} : failed(std::move(different));
}

}  // namespace graft::cli
