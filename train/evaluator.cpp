#include "train/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "autograd/joint_loss.h"
#include "core/runtime/recent.h"
#include "train/compile.h"

namespace graft {
namespace {

/// Sums over batches.
struct Sums {
  double loss = 0.0;
  std::int64_t samples = 0;
  double correct = 0.0;
  double judged = 0.0;
};

}  // namespace

struct Evaluator::State {
  Model model;  // a copy in the newest form that shares the user's tensors
  TrainOptions options;
  struct Planned {
    Plan plan;
    std::vector<std::int64_t> classes;  // as CompiledGraph::classes
  };
  std::vector<Planned> plans;
  std::vector<std::shared_ptr<Metric>> metrics;

  Planned& planned(const std::vector<Tensor>& inputs, std::size_t targets);
  void judge(const Batch& batch, Sums& sums);
  Evaluation means(const Sums& sums) const;
  void check_metrics(const Shard& shard) const;
  Evaluation joint(Sums sums, const Shard& shard) const;
};

/// `inputs`: those of the model, then the targets.
Evaluator::State::Planned& Evaluator::State::planned(const std::vector<Tensor>& inputs,
                                                     std::size_t targets) {
  const auto accepts = [&](const Planned& planned) { return planned.plan.accepts(inputs); };
  if (Planned* const planned = find_recent(plans, accepts)) return *planned;
  std::vector<ValueType> types;
  for (const Tensor& input : inputs) types.push_back({input.dtype(), SymShape(input.shape())});
  const auto first = types.end() - static_cast<std::ptrdiff_t>(targets);
  const CompileRequest request{.kind = StepKind::evaluate,
                               .inputs = {types.begin(), first},
                               .targets = {first, types.end()}};
  Compiled made = compile(model, options, request);
  return add_recent(plans, {std::move(made.plan), std::move(made.classes)});
}

void Evaluator::State::judge(const Batch& batch, Sums& sums) {
  const std::vector<Tensor> targets = targets_of(batch);
  std::vector<Tensor> inputs = batch.inputs;
  inputs.insert(inputs.end(), targets.begin(), targets.end());
  auto& [plan, classes] = planned(inputs, targets.size());
  check_class_targets(options.loss, targets, classes);
  const Shape& shape = plan.output(1).shape();
  plan.run(inputs);
  sums.loss += to_double(plan.output(0)).front() * static_cast<double>(batch.size);
  sums.samples += batch.size;
  const bool has_classes = has_class_targets(options.loss);
  const int axis = has_classes ? class_axis(options.loss, shape) : -1;
  for (const auto& metric : metrics) metric->add(plan.output(1), batch.target, axis);
  if (!has_classes) return;
  sums.correct += static_cast<double>(count_correct(plan.output(1), batch.target, axis));
  sums.judged += static_cast<double>(count_judged(options.loss, batch.target));
}

Evaluation Evaluator::State::means(const Sums& sums) const {
  Evaluation result{.loss = sums.loss, .samples = sums.samples};
  if (sums.samples > 0) result.loss /= static_cast<double>(sums.samples);
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
  std::array<double, 4> numbers{sums.loss, static_cast<double>(sums.samples), sums.correct,
                                sums.judged};
  if (shard.count > 1) {
    ranks.all_reduce(numbers);
  } else {
    ranks.broadcast(std::as_writable_bytes(std::span(numbers)), 0);
  }
  sums = {numbers[0], static_cast<std::int64_t>(numbers[1]), numbers[2], numbers[3]};
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
      const Tensor& tensor = value->initializer();
      const bool may_change = !parameters.empty() && is_float(tensor.dtype()) && tensor.rank() > 0;
      value->is_variable =
          may_change || std::ranges::find(parameters, value->name()) != parameters.end();
    }
  });
  state_->options.loss = std::move(options.loss);
  state_->options.output = std::move(options.output);
  state_->options.device = std::move(options.device);
  state_->options.fallback = options.fallback;
  state_->options.communicator = std::move(options.communicator);
}

Evaluator::~Evaluator() = default;
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;

void Evaluator::add_metric(std::shared_ptr<Metric> metric) {
  state_->metrics.push_back(std::move(metric));
}

Evaluation Evaluator::run(DataLoader& loader, const std::function<bool()>& goes_on) {
  state_->check_metrics(loader.shard());
  Sums sums;
  for (const auto& metric : state_->metrics) metric->reset();
  for (const Batch& batch : loader) {
    if (goes_on && !goes_on()) break;
    state_->judge(batch, sums);
  }
  return state_->joint(sums, loader.shard());
}

Evaluation Evaluator::run(const Batch& batch) {
  Sums sums;
  for (const auto& metric : state_->metrics) metric->reset();
  state_->judge(batch, sums);
  return state_->means(sums);
}

std::string loss_text(double loss) {
  return std::isnan(loss) ? "nan" : text(loss);
}

namespace {

template <class T>
std::int64_t count_correct_of(const Tensor& prediction, const Tensor& target, int class_axis) {
  const Shape& shape = prediction.shape();
  const std::int64_t outer = shape.size(0, class_axis);
  const std::int64_t classes = shape[class_axis];
  const std::int64_t inner = shape.size(class_axis + 1, shape.rank());
  const T* const scores = prediction.values<const T>().data();
  const std::int64_t* const labels = target.values<const std::int64_t>().data();
  std::int64_t correct = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const T* const column = scores + o * classes * inner + i;
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < classes; ++c) {
        if (column[c * inner] > column[best * inner]) best = c;
      }
      correct += best == labels[o * inner + i] ? 1 : 0;
    }
  }
  return correct;
}

}  // namespace

std::int64_t count_correct(const Tensor& prediction, const Tensor& target, int class_axis) {
  if (&prediction.device() != &cpu() || &target.device() != &cpu()) {
    return count_correct(prediction.to(cpu()), target.to(cpu()), class_axis);
  }
  std::int64_t correct = 0;
  visit_dtype(FloatTypes{}, prediction.dtype(),
              [&]<class T>() { correct = count_correct_of<T>(prediction, target, class_axis); });
  return correct;
}

}  // namespace graft
