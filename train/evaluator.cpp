#include "train/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "autograd/joint_loss.h"
#include "core/device/overlap.h"
#include "core/runtime/inference.h"
#include "core/runtime/recent.h"
#include "core/runtime/residency.h"
#include "core/tensor/count_correct.h"
#include "train/compile.h"
#include "train/judged.h"
#include "train/late_numbers.h"

namespace graft {
namespace {

/// Sums over batches.
struct Sums {
  LossMean loss;
  std::int64_t samples = 0;
  double correct = 0.0;
  double judged = 0.0;

  template <class Started>
  void add(const Loss& of, const Started& batch) {
    loss.add(of, batch.step.loss(), batch.weight);
    samples += batch.samples;
    correct += static_cast<double>(batch.step.correct().value_or(0));
    judged += static_cast<double>(batch.judged);
  }
};

/// The target for metrics: what the loss ignores is of no class.
Tensor without_ignored(const Loss& loss, const Tensor& target) {
  const std::optional<std::int64_t>& ignored = part_of(loss, 0).ignore_index;
  if (!ignored || *ignored < 0) return target;
  Tensor kept = target.to(cpu()).clone();
  std::ranges::replace(kept.values<std::int64_t>(), *ignored, std::int64_t{-1});
  return kept;
}

}  // namespace

void LossMean::add(const Loss& loss, double of_batch, double of_weight) {
  if (!(of_weight > 0.0)) return;
  const bool is_sum = loss.parts.empty() && !loss.joint && loss.reduction == Reduction::sum;
  sum += is_sum ? of_batch : of_batch * of_weight;
  weight += of_weight;
}

struct Evaluator::State {
  Model model;  // a copy in the newest form that shares the user's tensors
  TrainOptions options;
  /// What a batch adds, which the device may still be at.
  struct Started {
    StartedStep step;
    std::int64_t samples;
    std::int64_t judged;
    double weight;  // of its loss
  };
  std::vector<Compiled> plans;
  std::shared_ptr<SharedConstants> constants = std::make_shared<SharedConstants>();
  LateNumbers late_numbers;
  std::vector<std::shared_ptr<Metric>> metrics;

  Compiled& planned(const std::vector<Tensor>& inputs, std::size_t targets);
  Started start(const Batch& batch);
  bool may_add_late() const;
  Evaluation means(const Sums& sums) const;
  void check_metrics(const Shard& shard) const;
  Evaluation joint(Sums sums, const Shard& shard) const;
};

/// `inputs`: those of the model, then the targets.
Compiled& Evaluator::State::planned(const std::vector<Tensor>& inputs, std::size_t targets) {
  const auto accepts = [&](const Compiled& planned) { return planned.plan.accepts(inputs); };
  if (Compiled* const planned = find_recent(plans, accepts)) return *planned;
  std::vector<ValueType> types;
  for (const Tensor& input : inputs) types.push_back({input.dtype(), SymShape(input.shape())});
  const auto first = types.end() - static_cast<std::ptrdiff_t>(targets);
  const CompileRequest request{.kind = StepKind::evaluate,
                               .inputs = {types.begin(), first},
                               .targets = {first, types.end()},
                               .constants = constants};
  return add_recent(plans, compile(model, options, request));
}

/// Metrics look at the prediction before another batch takes its place.
Evaluator::State::Started Evaluator::State::start(const Batch& batch) {
  const std::int64_t samples = sample_count(batch);  // before metrics have seen it
  const std::vector<Tensor> targets = targets_of(batch);
  check_defined(batch.inputs, targets);
  std::vector<Tensor> inputs = batch.inputs;
  inputs.insert(inputs.end(), targets.begin(), targets.end());
  Compiled& planned = this->planned(inputs, targets.size());
  Plan& plan = planned.plan;
  check_class_targets(options.loss, targets, planned.classes);
  plan.start(inputs);
  const bool has_classes = has_class_targets(options.loss);
  const int axis = has_classes ? class_axis(options.loss, plan.output(1).shape()) : -1;
  const bool has_metrics = !metrics.empty();
  const Tensor seen =
      has_metrics && has_classes ? without_ignored(options.loss, batch.target) : batch.target;
  for (const auto& metric : metrics) metric->add(plan.output(1), seen, axis);
  return {late_numbers.take(plan, planned.counts_correct, options, targets), samples,
          has_classes ? count_judged(options.loss, batch.target) : 0,
          mean_weight(options.loss, batch.target, samples)};
}

bool Evaluator::State::may_add_late() const {
  return metrics.empty() && find_overlap(device(options.device)) != nullptr;
}

Evaluation Evaluator::State::means(const Sums& sums) const {
  Evaluation result{.loss = sums.loss.value(), .samples = sums.samples, .weight = sums.loss.weight};
  result.judged = static_cast<std::int64_t>(sums.judged);
  if (sums.judged > 0.0) result.accuracy = sums.correct / sums.judged;
  for (const auto& metric : metrics) {
    for (auto& value : metric->values()) result.metrics.push_back(std::move(value));
  }
  return result;
}

void Evaluator::State::check_metrics(const Shard& shard) const {
  if (shard.count == 1 || metrics.empty()) return;
  fail(ErrorKind::argument, "the loader gives shard ", shard.index, " of ", shard.count,
       ", but metrics beside loss and accuracy see all samples: give each rank a loader of them "
       "all");
}

/// What all ranks say of their sums, or rank 0 where each has seen all samples.
Evaluation Evaluator::State::joint(Sums sums, const Shard& shard) const {
  Communicator& ranks = or_alone(options.communicator);
  if (ranks.size() == 1) return means(sums);
  std::array<double, 5> numbers{sums.loss.sum, sums.loss.weight, static_cast<double>(sums.samples),
                                sums.correct, sums.judged};
  if (shard.count > 1) {
    ranks.all_reduce(numbers);
  } else {
    ranks.broadcast(std::as_writable_bytes(std::span(numbers)), 0);
  }
  sums = {{numbers[0], numbers[1]}, static_cast<std::int64_t>(numbers[2]), numbers[3], numbers[4]};
  Evaluation result = means(sums);
  for (auto& [name, value] : result.metrics) {
    ranks.broadcast(std::as_writable_bytes(std::span(&value, 1)), 0);
  }
  return result;
}

Evaluator::Evaluator(const Model& model, EvaluatorOptions options)
    : state_(std::make_unique<State>()) {
  device(options.device);  // throws if there is none
  // Nothing made from what changes between runs is folded into a plan: parameters and, beside them,
  // running statistics and weights that are tied to parameters.
  const std::vector<std::string>& parameters = options.parameters;
  state_->model = newest_form(model, [&](Graph& graph) {
    for (Value* value : graph.initializers()) {
      const bool may_change = !parameters.empty() && may_be_weight(*value);
      value->is_variable =
          may_change || std::ranges::find(parameters, value->name()) != parameters.end();
    }
  });
  choose_outputs(state_->model.graph(), options.loss, options.output);  // throws if it cannot
  state_->options.loss = std::move(options.loss);
  state_->options.output = std::move(options.output);
  state_->options.device = std::move(options.device);
  state_->options.fallback = options.fallback;
  state_->options.communicator = std::move(options.communicator);
  state_->options.counts_correct = true;
}

Evaluator::~Evaluator() = default;
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;

void Evaluator::add_metric(std::shared_ptr<Metric> metric) {
  if (metric == nullptr) fail(ErrorKind::argument, "the metric to add is null");
  state_->metrics.push_back(std::move(metric));
}

Evaluation Evaluator::run(DataLoader& loader, const std::function<bool()>& goes_on) {
  state_->check_metrics(loader.shard());
  Sums sums;
  for (const auto& metric : state_->metrics) metric->reset();
  const Loss& loss = state_->options.loss;
  std::optional<State::Started> last;  // added while the device is at the next
  for (const Batch& batch : loader) {
    if (goes_on && !goes_on()) break;
    const State::Started started = state_->start(batch);
    if (last) sums.add(loss, *std::exchange(last, std::nullopt));
    if (state_->may_add_late()) {
      last = started;
    } else {
      sums.add(loss, started);
    }
  }
  if (last) sums.add(loss, *last);
  return state_->joint(sums, loader.shard());
}

Evaluation Evaluator::run(const Batch& batch) {
  Sums sums;
  for (const auto& metric : state_->metrics) metric->reset();
  sums.add(state_->options.loss, state_->start(batch));
  return state_->means(sums);
}

std::string loss_text(double loss) {
  return std::isnan(loss) ? "nan" : text(loss);
}

namespace {

void check_countable(const Tensor& prediction, const Tensor& target, int class_axis) {
  if (!prediction.defined() || !target.defined()) {
    fail(ErrorKind::argument, prediction.defined() ? "the target" : "the prediction",
         " is undefined, wanted a tensor");
  }
  const bool is_score = prediction.dtype() == DType::f32 || prediction.dtype() == DType::f64;
  if (!is_score || target.dtype() != DType::i64) {
    fail(ErrorKind::type, "the prediction is ", prediction, ", the target ", target,
         ", wanted f32 or f64 and class indices i64");
  }
  const Shape& shape = prediction.shape();
  if (class_axis < 0 || class_axis >= shape.rank()) {
    fail(ErrorKind::argument, "the axis of classes is ", class_axis, ", the prediction ",
         prediction, ", wanted one of its axes");
  }
  const std::int64_t rows = shape.size(0, class_axis) * shape.size(class_axis + 1, shape.rank());
  if (target.size() != rows) {
    fail(ErrorKind::shape, "the target is ", target, ", wanted ", rows,
         " class indices: one for each prediction of ", prediction, " along axis ", class_axis);
  }
}

}  // namespace

std::int64_t count_correct(const Tensor& prediction, const Tensor& target, int class_axis,
                           std::int64_t ignored) {
  check_countable(prediction, target, class_axis);
  if (&prediction.device() != &cpu() || &target.device() != &cpu()) {
    return count_correct(prediction.to(cpu()), target.to(cpu()), class_axis, ignored);
  }
  const Shape& shape = prediction.shape();
  const std::int64_t* const labels = target.values<const std::int64_t>().data();
  std::int64_t correct = 0;
  visit_dtype(FloatTypes{}, prediction.dtype(), [&]<class T>() {
    correct = count_correct(prediction.values<const T>().data(), labels, target.size(),
                            shape[class_axis], shape.size(class_axis + 1, shape.rank()), ignored);
  });
  return correct;
}

}  // namespace graft
