// A model's whole way: read, written and read again, run in several ways, and trained for two steps
// in several ways.
#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/inference.h"
#include "io/onnx.h"
#include "tests/core/other_limits.h"
#include "tests/core/threads.h"
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

/// What the model answers, the same in all ways; nothing where it does not run.
std::optional<std::vector<Datum>> check_inference(const Model& model,
                                                  const std::vector<Datum>& inputs) {
  std::optional<Model> newest;
  if (!succeeds([&] { newest = inference_form(model); })) return std::nullopt;
  const Graph& graph = newest->graph();
  const Outcome unplanned = run_unplanned(graph, inputs);
  if (!unplanned.succeeded) return std::nullopt;
  const Outcome planned = run_planned(graph, inputs);
  require_same_bits(planned, run_planned(graph, inputs, {.poison = true}), "with poison");
  require_same_bits(planned, run_planned(graph, inputs, {.fuses_chains = false}), "without chains");
  if (rounds_only(graph)) {
    require_near(planned, unplanned, "planned against unplanned");
    const testing::Threads threads(3);
    require_near(run_planned(graph, inputs), unplanned, "three threads");
  }
  if (!planned.succeeded) return std::nullopt;
  return planned.results;
}

/// What two steps came to: losses, then parameters.
struct Trained {
  bool succeeded = false;
  std::size_t arena_bytes = 0;
  std::vector<float> losses{};
  std::vector<Tensor> parameters{};
};

Trained train(std::string_view bytes, const std::vector<Tensor>& inputs, const Tensor& target,
              const TrainOptions& options) {
  Trained trained;
  trained.succeeded = succeeds([&] {
    Model model = onnx::parse(bytes);  // steps change its tensors
    TrainStep step(model, options);
    for (int i = 0; i < 2; ++i) trained.losses.push_back(step.run(inputs, target));
    trained.arena_bytes = step.arena_bytes();
    for (const Value* value : model.graph().initializers()) {
      trained.parameters.push_back(value->initializer());
    }
    onnx::parse(onnx::serialize(model));
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

/// Whether it trains.
bool check_training(std::string_view bytes, const std::vector<Datum>& inputs,
                    const Datum& prediction) {
  if (!prediction.is_tensor() || !is_float(prediction.tensor().dtype())) return false;
  std::vector<Tensor> tensors;
  for (const Datum& input : inputs) tensors.push_back(input.tensor());
  const Tensor target = Tensor::zeros(prediction.tensor().dtype(), prediction.tensor().shape());
  TrainOptions options{.loss = mse(), .optimizer = Adam{.lr = 0.01F}};
  const Trained plain = train(bytes, tensors, target, options);
  options.poison = true;
  require_same(plain, train(bytes, tensors, target, options), "training with poison");
  options.poison = false;
  options.memory_budget = plain.arena_bytes * 3 / 4;
  if (!plain.succeeded || options.memory_budget == 0) return plain.succeeded;
  const Trained budgeted = train(bytes, tensors, target, options);
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
  const std::optional<std::vector<Datum>> answers = check_inference(*model, *inputs);
  if (!answers) return Reached::loaded;
  const bool trained = !answers->empty() && check_training(bytes, *inputs, answers->front());
  return trained ? Reached::trained : Reached::ran;
}

}  // namespace graft::fuzz
