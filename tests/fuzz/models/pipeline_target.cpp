// A model's whole way: read, written and read again, run in several ways, and trained for two steps
// in several ways.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/inference.h"
#include "io/onnx.h"
#include "tests/core/other_limits.h"
#include "tests/core/threads.h"
#include "tests/fuzz/models/optional_passes.h"
#include "tests/fuzz/models/oracles.h"
#include "tests/fuzz/models/random.h"
#include "tests/fuzz/models/small_models.h"
#include "tests/fuzz/target.h"
#include "train/train_step.h"

namespace graft::fuzz {
namespace {

/// What a small model may ask for, so that thousands run in a minute.
Limits small_limits() {
  Limits limits;
  limits.folded_bytes = 1 << 20;
  limits.folded_tensor_bytes = 1 << 16;
  limits.table_entries = 1 << 16;
  limits.inlined_nodes = 500;
  limits.unrolled_nodes = 200;
  return limits;
}

/// Numbers with ties and zeros among them.
double any_number(Random& random, bool is_float) {
  constexpr double kNumbers[] = {0, 1, -1, 0.5, 2};
  if (!is_float) return static_cast<double>(random.below(4));
  return random.one_in(3) ? kNumbers[random.below(std::size(kNumbers))] : 2 * random.uniform() - 1;
}

std::optional<Tensor> input_for(const ValueType& type, Random& random) {
  constexpr std::int64_t kMostElements = 8192;
  if (type.is_container) return std::nullopt;
  std::vector<std::int64_t> dims;
  if (!type.shape) dims = {2};
  for (int axis = 0; type.shape && axis < type.shape->rank(); ++axis) {
    const Dim& dim = (*type.shape)[axis];
    dims.push_back(dim.is_known() ? dim.value() : 2);
  }
  std::optional<Tensor> tensor;
  succeeds([&] {
    const Shape shape(dims);
    if (shape.size() > kMostElements) return;
    if (type.dtype == DType::string) {
      std::vector<std::string> texts(static_cast<std::size_t>(shape.size()));
      for (std::string& text : texts) text = random.one_in(2) ? "a" : "b c";
      tensor = Tensor::from_strings(shape, texts);
    } else if (visit_dtype(AllTypes{}, type.dtype, []<class T>() {})) {
      std::vector<double> values(static_cast<std::size_t>(shape.size()));
      for (double& value : values) value = any_number(random, is_float(type.dtype));
      tensor = Tensor::from(shape, values).cast(type.dtype);
    }
  });
  return tensor;
}

/// One for each required input; nothing where one cannot be made.
std::optional<std::vector<Datum>> inputs_for(const Graph& graph) {
  Random random(1);
  std::vector<Datum> inputs;
  for (const Value* value : passes::required_inputs(graph)) {
    const std::optional<Tensor> input = input_for(value->type(), random);
    if (!input) return std::nullopt;
    inputs.emplace_back(*input);
  }
  return inputs;
}

/// Without each pass that changed something.
void check_passes(const Graph& graph, const std::vector<Datum>& inputs, const Outcome& planned,
                  const Outcome& unplanned, const std::vector<std::string_view>& left_out) {
  for (const std::string_view pass : left_out) {
    const std::string what = "without " + std::string(pass);
    const passes::PassWatch watch(pass);
    const Outcome without = run_planned(graph, inputs);
    if (without.lacks_memory) continue;
    if (keeps_bits(pass)) require_same_bits(planned, without, what);
    if (rounds_only(graph)) require_near(without, unplanned, what);
    require(planned.succeeded == without.succeeded, what + ": another end");
  }
}

/// What the model answers, the same in all ways, and what numbers it met, one node after the other;
/// nothing where it does not run.
std::optional<Outcome> check_inference(const Model& model, const std::vector<Datum>& inputs) {
  std::optional<Model> newest;
  if (!succeeds([&] { newest = inference_form(model); })) return std::nullopt;
  const Graph& graph = newest->graph();
  Outcome unplanned = run_unplanned(graph, inputs);
  if (!unplanned.succeeded) return std::nullopt;
  std::vector<std::string_view> optional;
  const Outcome planned = [&] {
    const passes::PassWatch watch;
    const Outcome outcome = run_planned(graph, inputs);
    optional = optional_passes(watch);
    return outcome;
  }();
  require_same_bits(planned, run_planned(graph, inputs, {.poison = true}), "with poison");
  check_passes(graph, inputs, planned, unplanned, optional);
  if (rounds_only(graph)) {
    require_near(planned, unplanned, "planned against unplanned");
    if (unplanned.stays_in_f32())
      require_near(planned, run_in_f64(graph, inputs, planned), "f32 against f64");
    const testing::Threads threads(3);
    require_near(run_planned(graph, inputs), unplanned, "three threads");
  }
  if (!planned.succeeded) return std::nullopt;
  unplanned.results = planned.results;
  return unplanned;
}

/// What two steps came to: losses, then parameters.
struct Trained {
  bool succeeded = false;
  std::size_t arena_bytes = 0;
  std::vector<float> losses{};
  std::vector<Tensor> parameters{};
};

void own_tensors(Graph& graph) {
  for (Value* value : graph.initializers()) value->set_initializer(value->initializer().clone());
  for (const auto& node : graph.nodes()) {
    if (node->is("Constant") && node->attributes.has("value")) {  // it may train as well
      node->attributes = {{"value", node->attributes.get_tensor("value").clone()}};
    }
    for_each_body(*node, [](Graph& body) { own_tensors(body); });
  }
}

/// A copy that steps may change.
Model copy_of(const Model& original) {
  Model model = original.clone();
  own_tensors(model.graph());
  return model;
}

Trained train(const Model& original, const std::vector<Tensor>& inputs, const Tensor& target,
              const TrainOptions& options) {
  Trained trained;
  trained.succeeded = succeeds([&] {
    Model model = copy_of(original);
    TrainStep step(model, options);
    for (int i = 0; i < 2; ++i) trained.losses.push_back(step.run(inputs, target));
    trained.arena_bytes = step.arena_bytes();
    for (const Value* value : model.graph().initializers()) {
      trained.parameters.push_back(value->initializer());
    }
    if (options.poison) onnx::parse(onnx::serialize(model));  // once is enough
  });
  return trained;
}

void require_same(const Trained& a, const Trained& b, const std::string& what) {
  require(a.succeeded == b.succeeded, what + (a.succeeded ? ": fails" : ": succeeds"));
  for (std::size_t i = 0; i < a.losses.size() && a.succeeded; ++i) {
    const bool equal =
        a.losses[i] == b.losses[i] || (std::isnan(a.losses[i]) && std::isnan(b.losses[i]));
    require(equal, what + ": loss " + text(a.losses[i], ", not ", b.losses[i]));
  }
  for (std::size_t i = 0; i < a.parameters.size() && a.succeeded; ++i) {
    require(same_bits(a.parameters[i], b.parameters[i]),
            what + ": initializer " + std::to_string(i));
  }
}

/// Losses and parameters but for rounding, as long as these have not moved far: a steep slope makes
/// much of little.
void require_near(const Trained& a, const Trained& b, const std::string& what) {
  constexpr double kFar = 10;
  constexpr double kAllowed = 1e-3;
  require(a.succeeded == b.succeeded, what + (a.succeeded ? ": fails" : ": succeeds"));
  const auto is_near = [](double x, double y) {
    return !(std::abs(x) < kFar && std::abs(y) < kFar) || std::abs(x - y) < kAllowed;
  };
  for (std::size_t i = 0; i < a.losses.size() && a.succeeded; ++i) {
    if (!(std::abs(a.losses[i]) < kFar)) return;
    require(is_near(a.losses[i], b.losses[i]),
            what + ": loss " + text(a.losses[i], ", not ", b.losses[i]));
  }
  for (std::size_t i = 0; i < a.parameters.size() && a.succeeded; ++i) {
    if (a.parameters[i].dtype() != DType::f32) continue;
    const std::vector<double> of_a = to_double(a.parameters[i]);
    const std::vector<double> of_b = to_double(b.parameters[i]);
    for (std::size_t k = 0; k < of_a.size(); ++k) {
      require(is_near(of_a[k], of_b[k]), what + text(": element ", k, " of initializer ", i, ": ",
                                                     of_a[k], ", not ", of_b[k]));
    }
  }
}

/// Training without each pass that changed something. By an optimizer whose steps are as small as
/// gradients are: Adam's would make one of 0.01 of a rounding error.
void check_passes_of_training(const Model& model, const std::vector<Tensor>& inputs,
                              const Tensor& target, TrainOptions options, bool is_tame) {
  options.optimizer = SGD{.lr = 0.01F};
  std::vector<std::string_view> optional;
  const Trained all = [&] {
    const passes::PassWatch watch;
    const Trained trained = train(model, inputs, target, options);
    optional = optional_passes(watch);
    return trained;
  }();
  const bool smooth = is_tame && is_smooth(model.graph());
  for (const std::string_view pass : optional) {
    const std::string what = "training without " + std::string(pass);
    const passes::PassWatch watch(pass);
    const Trained without = train(model, inputs, target, options);
    if (keeps_bits(pass)) {
      require_same(all, without, what);
    } else if (smooth) {
      require_near(all, without, what);
    }
  }
}

std::vector<std::string> floats_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Value* value : graph.initializers()) {
    if (is_float(value->dtype())) names.push_back(value->name());
  }
  return names;
}

/// Whether it trains: all that is a float, by the first output of floats.
bool check_training(const Model& model, const std::vector<Datum>& inputs, const Outcome& answers) {
  const auto is_prediction = [](const Datum& datum) {
    return datum.is_tensor() && is_float(datum.tensor().dtype());
  };
  const auto found = std::ranges::find_if(answers.results, is_prediction);
  if (found == answers.results.end()) return false;
  std::vector<Tensor> tensors;
  for (const Datum& input : inputs) tensors.push_back(input.tensor());
  const Tensor target = Tensor::zeros(found->tensor().dtype(), found->tensor().shape());
  const auto index = static_cast<std::size_t>(found - answers.results.begin());
  TrainOptions options{.loss = mse(),
                       .optimizer = Adam{.lr = 0.01F},
                       .parameters = floats_of(model.graph()),
                       .output = model.graph().outputs()[index]->name()};
  const Trained plain = train(model, tensors, target, options);
  options.poison = true;
  require_same(plain, train(model, tensors, target, options), "training with poison");
  options.poison = false;
  check_passes_of_training(model, tensors, target, options, answers.is_tame());
  options.memory_budget = plain.arena_bytes * 3 / 4;
  if (!plain.succeeded || options.memory_budget == 0) return plain.succeeded;
  const Trained budgeted = train(model, tensors, target, options);
  if (budgeted.succeeded) require_same(plain, budgeted, "training within a budget");
  return true;
}

}  // namespace

Reached follow_pipeline(std::string_view bytes) {
  const testing::OtherLimits limits(small_limits());
  const testing::Threads threads(1);
  std::optional<Model> model;
  if (!succeeds([&] { model = onnx::parse(bytes); })) return Reached::nothing;
  if (!is_small(model->graph())) return Reached::loaded;
  const std::string written = onnx::serialize(*model);
  require(onnx::serialize(onnx::parse(written)) == written, "written again, it differs");
  const std::optional<std::vector<Datum>> inputs = inputs_for(model->graph());
  if (!inputs) return Reached::loaded;
  const std::optional<Outcome> answers = check_inference(*model, *inputs);
  if (!answers) return Reached::loaded;
  const bool trained = check_training(*model, *inputs, *answers);
  return trained ? Reached::trained : Reached::ran;
}

}  // namespace graft::fuzz
