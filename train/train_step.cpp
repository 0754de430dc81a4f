#include "train/train_step.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "autograd/joint_loss.h"
#include "core/graph/print.h"
#include "core/runtime/recent.h"
#include "core/runtime/residency.h"
#include "train/averages.h"
#include "train/check_options.h"
#include "train/check_state.h"
#include "train/compile.h"
#include "train/data_parallel.h"
#include "train/largest_batch.h"
#include "train/late_numbers.h"
#include "train/shared_state.h"
#include "train/trainable.h"

namespace graft {
namespace {

ValueType type_of(const Tensor& tensor) {
  return {tensor.dtype(), SymShape(tensor.shape())};
}

struct PlannedStep : Compiled {
  StepKind kind;
  std::size_t started;  // UpdateGroups::started
};

/// A copy on the device that shares no elements.
Tensor copied_to(Device& device, const Tensor& tensor) {
  return &tensor.device() == &device ? tensor.clone() : tensor.to(device);
}

}  // namespace

struct TrainStep::State {
  Model model;  // a copy in the newest form that shares the user's tensors
  TrainOptions options;
  Trained trained;
  std::int64_t parameter_count = 0;
  std::size_t parameter_bytes = 0;
  StateTensors state;
  std::vector<std::shared_ptr<PlannedStep>> plans;
  std::shared_ptr<PlannedStep> last;    // that ran; it may be too old to be among the plans
  std::map<std::string, Tensor> aside;  // what is trained, while the model holds averages
  float base_lr = 0.0F;
  std::vector<Tensor> clocks;  // lr and step of each
  std::size_t target_count = 1;
  std::vector<Tensor> plan_inputs;
  std::shared_ptr<SharedConstants> constants = std::make_shared<SharedConstants>();
  LateNumbers numbers;
  std::int64_t updates = 0;
  std::uint64_t runs = 0;
  std::optional<Gathered> gathered;  // since the last step

  StepKind next_kind() const;
  void set_clocks();
  void set_inputs(const std::vector<Tensor>& inputs, std::span<const Tensor> targets);
  StartedStep start(const std::vector<Tensor>& inputs, std::span<const Tensor> targets);
  void plan(const std::vector<Tensor>& inputs, std::span<const Tensor> targets);
  PlannedStep make_plan(StepKind kind, const std::vector<ValueType>& types, std::int64_t at);
  void check_last_stage(StepKind kind, const std::vector<ValueType>& types);
  void require_trained() const;
  Communicator& ranks() const { return or_alone(options.communicator); }
  StepTensors tensors() const { return {model.graph(), trained, state, options}; }
  const std::shared_ptr<PlannedStep>& planned(StepKind kind);
  PlannedStep& last_planned() const {
    if (last == nullptr) fail(ErrorKind::argument, "no step has run yet");
    return *last;
  }
};

StepKind TrainStep::State::next_kind() const {
  if (!options.optimizer) return StepKind::gradients;
  if (options.accumulate == 1) return StepKind::update;
  const auto done = runs % static_cast<std::uint64_t>(options.accumulate);
  return done + 1 == static_cast<std::uint64_t>(options.accumulate) ? StepKind::apply
                                                                    : StepKind::accumulate;
}

void TrainStep::State::set_clocks() {
  for (std::size_t i = 0; i < trained.updates.clocks.size(); ++i) {
    const Clock& clock = trained.updates.clocks[i];
    clocks[2 * i].values<float>()[0] =
        trained.updates.rate(clock, base_lr, updates, options.total_updates);
    clocks[2 * i + 1].values<std::int64_t>()[0] = updates - clock.start + 1;
  }
}

/// Assigned in place: a new handle would allocate.
void TrainStep::State::set_inputs(const std::vector<Tensor>& inputs,
                                  std::span<const Tensor> targets) {
  check_defined(inputs, targets);
  target_count = targets.size();
  plan_inputs.resize(inputs.size() + targets.size() + clocks.size());
  auto at = std::ranges::copy(inputs, plan_inputs.begin()).out;
  at = std::ranges::copy(targets, at).out;
  std::ranges::copy(clocks, at);
}

/// `types`: of the model's inputs and the targets. `at`: the updates done before the step.
PlannedStep TrainStep::State::make_plan(StepKind kind, const std::vector<ValueType>& types,
                                        std::int64_t at) {
  const auto targets = types.end() - static_cast<std::ptrdiff_t>(target_count);
  const CompileRequest request{.kind = kind,
                               .inputs = {types.begin(), targets},
                               .targets = {targets, types.end()},
                               .trained = trained,
                               .state = &state,
                               .updates = at,
                               .constants = constants};
  return {compile(model, options, request), kind, trained.updates.started(at)};
}

/// Where parameters start later, the budget must hold for that, too, before the first step.
void TrainStep::State::check_last_stage(StepKind kind, const std::vector<ValueType>& types) {
  const auto& all = trained.updates.clocks;
  if (plans.empty() && updates == 0 && trained.updates.started(0) < all.size()) {
    make_plan(kind, types, std::ranges::max(all, {}, &Clock::start).start);
  }
}

const std::shared_ptr<PlannedStep>& TrainStep::State::planned(StepKind kind) {
  const std::size_t started = trained.updates.started(updates);
  const auto accepts = [&](const std::shared_ptr<PlannedStep>& planned) {
    return planned->kind == kind && planned->started == started &&
           planned->plan.accepts(plan_inputs);
  };
  if (const auto* const found = find_recent(plans, accepts)) return *found;
  std::vector<ValueType> types;
  for (const Tensor& input : plan_inputs) types.push_back(type_of(input));
  types.resize(types.size() - clocks.size());
  try {
    check_last_stage(kind, types);
    return add_recent(plans, std::make_shared<PlannedStep>(make_plan(kind, types, updates)));
  } catch (const Error& error) {
    const bool has_limit =
        options.memory_budget != 0 || device(options.device).kind() != DeviceKind::cpu;
    if (error.kind() != ErrorKind::memory || !has_limit) throw;
    fail(ErrorKind::memory, error.what(),
         largest_batch(types, [&](const auto& smaller) { make_plan(kind, smaller, updates); }));
  }
}

TrainStep::TrainStep(Model& model, TrainOptions options) : state_(std::make_unique<State>()) {
  State& s = *state_;
  check(options);
  if (options.optimizer) s.base_lr = graft::learning_rate(*options.optimizer);
  TrainableModel made = prepare_training(model, options);
  for (const std::string& name : made.trained.parameters) {
    const Tensor& tensor = made.model.graph().find(name)->initializer();
    s.parameter_count += tensor.size();
    s.parameter_bytes += tensor.bytes();
  }
  share_with_file(made, model);
  s.model = std::move(made.model);
  s.trained = std::move(made.trained);
  for (std::size_t i = 0; i < s.trained.updates.clocks.size(); ++i) {
    s.clocks.push_back(Tensor::scalar(0.0F));
    s.clocks.push_back(Tensor::scalar<std::int64_t>(0));
  }
  s.options = std::move(options);
  check_own_updates(s.model.graph(), s.trained.parameters, s.options);
  s.options.seed = seed_of_rank(s.options.seed, s.ranks());
  share_start(s.model.graph(), s.trained.parameters, s.ranks());
  s.trained.owners = choose_owners(s.model.graph(), s.trained.parameters, s.options);
}

TrainStep::~TrainStep() = default;
TrainStep::TrainStep(TrainStep&&) noexcept = default;
TrainStep& TrainStep::operator=(TrainStep&&) noexcept = default;

StartedStep TrainStep::State::start(const std::vector<Tensor>& inputs,
                                    std::span<const Tensor> targets) {
  require_trained();
  set_inputs(inputs, targets);
  gathered.reset();
  set_clocks();
  const std::shared_ptr<PlannedStep>& planned = this->planned(next_kind());
  Plan& plan = planned->plan;
  check_class_targets(options.loss, targets, planned->classes);
  plan.start(plan_inputs, {.step = runs});
  ++runs;
  last = planned;
  if (planned->kind == StepKind::update || planned->kind == StepKind::apply) {
    ++updates;
    meet_after_update(tensors(), updates);
  }
  return numbers.take(plan, planned->counts_correct, options, targets);
}

StartedStep TrainStep::start(const std::vector<Tensor>& inputs, const Tensor& target) {
  return state_->start(inputs, {&target, 1});
}

StartedStep TrainStep::start(const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& targets) {
  return state_->start(inputs, targets);
}

float TrainStep::run(const std::vector<Tensor>& inputs, const Tensor& target) {
  return static_cast<float>(start(inputs, target).loss());
}

float TrainStep::run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets) {
  return static_cast<float>(start(inputs, targets).loss());
}

void TrainStep::State::plan(const std::vector<Tensor>& inputs, std::span<const Tensor> targets) {
  set_inputs(inputs, targets);
  planned(next_kind());
}

void TrainStep::plan(const std::vector<Tensor>& inputs, const Tensor& target) {
  state_->plan(inputs, {&target, 1});
}

void TrainStep::plan(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets) {
  state_->plan(inputs, targets);
}

const Tensor& TrainStep::prediction() const {
  return state_->last_planned().plan.output(1);
}

std::map<std::string, Tensor> TrainStep::gradients() const {
  const PlannedStep& last = state_->last_planned();
  if (state_->options.optimizer) {
    fail(ErrorKind::argument, "gradients are kept only by a step without an optimizer");
  }
  std::map<std::string, Tensor> gradients;
  for (std::size_t i = 2; i < last.outputs.size(); ++i) {
    gradients[last.outputs[i]] = copied_to(cpu(), last.plan.output(static_cast<int>(i)));
  }
  return gradients;
}

float TrainStep::learning_rate() const {
  const TrainOptions& options = state_->options;
  return state_->base_lr * options.schedule.factor(state_->updates, options.total_updates);
}

float TrainStep::learning_rate(const std::string& parameter) const {
  const State& s = *state_;
  const UpdateGroups& all = s.trained.updates;
  const UpdateGroup* const group = all.find(parameter);
  if (group == nullptr) fail(ErrorKind::argument, "'", parameter, "' does not train here");
  return all.rate(all.clocks[all.clock_of(*group)], s.base_lr, s.updates, s.options.total_updates);
}

float TrainStep::base_learning_rate() const {
  return state_->base_lr;
}

void TrainStep::set_base_learning_rate(float lr) {
  if (!(lr >= 0.0F) || !std::isfinite(lr)) {
    fail(ErrorKind::argument, "the learning rate is ", lr,
         ", wanted a finite number of at least 0");
  }
  state_->base_lr = lr;
}

void TrainStep::set_total_updates(std::int64_t total) {
  check_total_updates(total);
  state_->options.total_updates = total;
}

TrainState TrainStep::state() const {
  const State& s = *state_;
  s.require_trained();
  TrainState state{.weights = weights_of(s.model.graph(), s.trained),
                   .optimizer = s.state,
                   .updates = s.updates,
                   .batches = s.runs,
                   .total_updates = s.options.total_updates,
                   .base_learning_rate = s.base_lr};
  complete(state, s.gathered, s.tensors());
  return state;
}

void TrainStep::load_state(const TrainState& state) {
  State& s = *state_;
  const std::map<std::string, Tensor> weights = weights_of(s.model.graph(), s.trained);
  check_weights(weights, state.weights);
  check_optimizer_state(s.model.graph(), s.trained, s.options, state);
  set_base_learning_rate(state.base_learning_rate);
  copy_changed(weights, state.weights);
  // Plans hold the tensors of the state that there was, and constants made from weights.
  s.last.reset();
  s.plans.clear();
  s.aside.clear();
  s.gathered.reset();
  StateTensors loaded;
  for (const auto& [name, tensor] : state.optimizer) {
    loaded.emplace(name, copied_to(device(s.options.device), tensor));
  }
  keep_share(s.trained.owners, s.ranks().rank(), loaded);
  s.state = std::move(loaded);
  s.updates = state.updates;
  s.runs = state.batches;
  s.options.total_updates = state.total_updates;
}

void TrainStep::synchronize() {
  meet(state_->tensors());
  if (!state_->trained.owners.empty()) gather_state();
}

void TrainStep::gather_state() {
  state_->gathered = gather(state_->tensors());
}

std::int64_t TrainStep::updates() const {
  return state_->updates;
}

void TrainStep::State::require_trained() const {
  if (aside.empty()) return;
  fail(ErrorKind::argument,
       "the model holds averages, wanted what is trained: ", "use_averages(false) brings it back");
}

void TrainStep::use_averages(bool on) {
  State& s = *state_;
  if (on == uses_averages()) return;
  const std::map<std::string, Tensor> weights = weights_of(s.model.graph(), s.trained);
  if (!on) {
    for (const auto& [name, tensor] : s.aside) weights.at(name).copy_from(tensor);
    return s.aside.clear();
  }
  s.aside = take_averages(weights, s.state);
}

bool TrainStep::uses_averages() const {
  return !state_->aside.empty();
}

const std::vector<std::string>& TrainStep::parameter_names() const {
  return state_->trained.parameters;
}

std::vector<std::string> TrainStep::changed_names(bool with_statistics) const {
  const State& s = *state_;
  std::vector<std::string> names = s.trained.parameters;
  for (const Tie& tie : s.trained.ties) names.push_back(tie.follower);
  if (!with_statistics) return names;
  for (const Value* value : running_statistics(s.model.graph())) names.push_back(value->name());
  return names;
}

std::int64_t TrainStep::parameter_count() const {
  return state_->parameter_count;
}

const std::vector<UpdateGroup>& TrainStep::groups() const {
  return state_->trained.updates.groups;
}

std::size_t TrainStep::arena_bytes() const {
  std::size_t most = 0;
  for (const auto& planned : state_->plans) most = std::max(most, planned->plan.arena_bytes());
  return most;
}

std::size_t TrainStep::lower_bound_bytes() const {
  return state_->last_planned().plan.lower_bound_bytes();
}

std::size_t TrainStep::parameter_bytes() const {
  return state_->parameter_bytes;
}

std::size_t TrainStep::state_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : state_->state) bytes += tensor.bytes();
  return bytes;
}

std::string TrainStep::describe() const {
  if (state_->last == nullptr) return {};
  std::string result = print(state_->last->plan.graph());
  for (const StepProfile& step : state_->last->plan.profile()) {
    result += text(step.node->label(), " by ", step.kernel, "\n");
  }
  return result;
}

void TrainStep::set_profiling(bool on) {
  state_->last_planned().plan.set_profiling(on);
}

std::vector<StepProfile> TrainStep::profile() const {
  return state_->last_planned().plan.profile();
}

}  // namespace graft
