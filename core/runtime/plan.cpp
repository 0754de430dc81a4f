#include "core/runtime/plan.h"

#include <cassert>
#include <chrono>
#include <cstring>
#include <optional>

#include "core/base/at.h"
#include "core/base/parallel.h"
#include "core/base/say_once.h"
#include "core/graph/number_table.h"
#include "core/graph/order.h"
#include "core/ops/table_limit.h"
#include "core/ops/together.h"
#include "core/passes/pass.h"
#include "core/passes/pipeline.h"
#include "core/runtime/arena.h"
#include "core/runtime/bindings.h"
#include "core/runtime/budget.h"
#include "core/runtime/dead_memory.h"
#include "core/runtime/input_slots.h"
#include "core/runtime/nan_watch.h"
#include "core/runtime/plan_kernels.h"
#include "core/runtime/residency.h"
#include "core/runtime/update_runs.h"

namespace graft {
namespace {

struct Step {
  const Node* node;
  std::shared_ptr<const PreparedKernel> kernel;
  std::size_t first_pointer;  // inputs, then outputs, in State::pointers
  std::size_t input_count;
  std::size_t output_count;
  void* workspace;
};

using Kernels = NodeTable<std::shared_ptr<const PreparedKernel>>;  // null: not of this plan

}  // namespace

struct Plan::State {
  std::unique_ptr<Graph> graph;
  PlanOptions options;
  std::vector<Value*> inputs;
  Arena layout;
  Tensor arena;
  std::vector<Step> steps;
  std::vector<std::size_t> run_ends;  // by step: where those end that are taken together with it
  std::vector<void*> pointers;
  std::optional<Bindings> bindings;
  std::optional<InputSlots> slots;  // on another device than the CPU
  std::optional<InitializerCopies> initializers;
  std::vector<Tensor> outputs;
  std::optional<DeadMemory> dead;  // only when poisoning
  bool profiling = false;
  std::vector<double> seconds;
  bool has_run = false;  // what is bound
  bool is_recorded = false;
  std::unique_ptr<Replay> replay;  // of `execute`; the last, since it holds addresses of the rest

  Arena fit(WorkspaceBytes& workspaces, Kernels& kernels, passes::PassContext& context);
  void prepare(passes::PassContext& context);
  void place_operands();
  void connect();
  void view_outputs(bool only_of_inputs);
  void* in_arena(std::size_t offset) const {
    return static_cast<std::byte*>(arena.data()) + offset;
  }
  void* address(const Value* value) const;
  KernelArgs arguments(const Step& step, const RunState& run) const;
  void execute(const RunState& run);
  void execute_with_checks(const RunState& run);
  void record();
  void replay_or_execute(const RunState& run);
  void perform(const RunState& run);
  void start(std::span<const Tensor> given, const RunState& run, bool waits);
  void bind(std::span<const Tensor> given, std::span<const Tensor> wanted);
  void run_bound();
};

/// Places everything, within the budget. Adds kernels for nodes that are added.
Arena Plan::State::fit(WorkspaceBytes& workspaces, Kernels& kernels, passes::PassContext& context) {
  const bool has_budget = options.memory_budget != 0;
  const bool may_repeat = has_budget || options.repeated_share > 0;
  const std::size_t enough = has_budget ? options.memory_budget : options.ample_bytes;
  // Cards take updates together: they stand at the end, and gradients wait for them.
  const bool gathers = options.device->kind() != DeviceKind::cpu;
  if (gathers) gather_updates(*graph);
  Arena whole;
  passes::run_stage("order_for_memory", *graph, context, [&] {
    whole = gathers ? plan_arena(*graph, workspaces, options.binds_outputs)
                    : order_and_plan(*graph, workspaces, options.binds_outputs);
    return !whole.order_before.empty();
  });
  if (!may_repeat || whole.bytes <= enough) return whole;
  if (!whole.order_before.empty()) reorder(*graph, whole.order_before);
  BudgetedArena fitting;
  passes::run_stage("recompute", *graph, context, [&] {
    fitting = has_budget ? fit_budget(*graph, workspaces, options.memory_budget)
                         : recompute_cheap_values(*graph, workspaces, options.repeated_share);
    return !fitting.repeats.empty();
  });
  for (const passes::Repeat& repeat : fitting.repeats) {
    if (kernels[*repeat.original] != nullptr) {
      kernels[*repeat.node] = PlanKernels(*options.device, options.fallback).make(*repeat.node);
    }
  }
  return std::move(fitting.arena);
}

/// Scratch memory does not depend on the order of nodes, so kernels come first.
void Plan::State::prepare(passes::PassContext& context) {
  const TablesTogether tables;
  Kernels kernels(*graph);
  WorkspaceBytes workspaces(*graph);
  passes::run_stage("prepare_kernels", *graph, context, [&] {
    PlanKernels maker(*options.device, options.fallback);
    for (const Node* node : kernel_nodes(*graph)) {
      const auto& kernel = kernels[*node] = maker.make(*node);
      workspaces[*node] = kernel->workspace_bytes;
    }
    maker.refuse_missing();
    return false;
  });
  layout = fit(workspaces, kernels, context);
  arena = Tensor::empty(DType::u8, {static_cast<std::int64_t>(layout.bytes)}, *options.device);
  std::vector<PlannedStep> planned;
  for (const Node* node : kernel_nodes(*graph)) {
    planned.push_back({node, kernels[*node]->workspace_bytes != 0});
    steps.push_back({node, kernels[*node], 0, node->inputs().size(),
                     static_cast<std::size_t>(node->output_count()),
                     in_arena(layout.workspace_offsets[steps.size()])});
    run_ends.push_back(steps.size());
  }
  if (options.device->kind() != DeviceKind::cpu) run_ends = update_runs(planned);
}

/// What lies outside the arena.
void Plan::State::place_operands() {
  Device& device = *options.device;
  SharedConstants own;
  initializers.emplace(*graph, device, options.constants ? *options.constants : own);
  bindings.emplace(*graph);
  if (device.kind() == DeviceKind::cpu) return;
  const bool binds = options.binds_outputs;
  slots.emplace(binds ? std::span<const TensorSpec>() : bindings->input_specs(), device);
  if (binds) return slots->upload({}, {});  // the state of all its runs
  if (options.starts) slots->prepare_ahead();
  for (std::size_t i = 0; i < inputs.size(); ++i) bindings->set_input(i, slots->input(i));
}

void* Plan::State::address(const Value* value) const {
  const int index = layout.storage.of_value[*value];
  const Storage& one = at(layout.storage.storages, index);
  switch (one.place) {
    case Storage::Place::arena:
      return in_arena(at(layout.storage_offsets, index));
    case Storage::Place::initializer:
      return initializers->address(*one.initializer);
    case Storage::Place::input:
    case Storage::Place::output:
      break;
  }
  return bindings->address(one);
}

void Plan::State::connect() {
  const auto add = [&](const Value* value) {
    if (value != nullptr) bindings->follow(pointers.size(), layout.storage[value]);
    pointers.push_back(value == nullptr ? nullptr : address(value));
  };
  for (Step& step : steps) {
    step.first_pointer = pointers.size();
    for (const Value* input : step.node->inputs()) add(input);
    for (int i = 0; i < step.node->output_count(); ++i) add(step.node->output(i));
  }
}

/// An output that is (a view of) an input moves with the caller's tensor.
void Plan::State::view_outputs(bool only_of_inputs) {
  outputs.resize(graph->outputs().size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value* const value = graph->outputs()[i];
    if (only_of_inputs && layout.storage[value].place != Storage::Place::input) continue;
    outputs[i] = Tensor::view(value->dtype(), value->known_shape(), address(value), nullptr,
                              *options.device);
  }
}

KernelArgs Plan::State::arguments(const Step& step, const RunState& run) const {
  void* const* const first = pointers.data() + step.first_pointer;
  return {{first, step.input_count},
          {first + step.input_count, step.output_count},
          step.workspace,
          &run};
}

void Plan::State::execute(const RunState& run) {
  const auto run_step = [&](const Step& step) { step.kernel->run(arguments(step, run)); };
  for (std::size_t i = 0; i < steps.size(); i = run_ends[i]) {
    if (run_ends[i] == i + 1) {
      run_step(steps[i]);
      continue;
    }
    const Together together(*options.device);
    for (std::size_t k = i; k < run_ends[i]; ++k) run_step(steps[k]);
  }
}

void Plan::State::execute_with_checks(const RunState& run) {
  using Clock = std::chrono::steady_clock;
  Device& device = *options.device;
  NanWatch watch(steps.size());
  const auto operands = [&](const Step& step, bool of_outputs) {
    const std::size_t count = step.input_count + step.output_count;
    return operands_of(*step.node, of_outputs, {pointers.data() + step.first_pointer, count},
                       device);
  };
  std::optional<DeadMemory::Run> poisoned;
  if (dead) poisoned.emplace(*dead);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (options.debug_nan) watch.before(*step.node, operands(step, false));
    if (poisoned) poisoned->before(i);
    const Clock::time_point start = Clock::now();
    step.kernel->run(arguments(step, run));
    if (options.debug_nan) watch.after(*step.node, operands(step, true));
    if (profiling) {
      device.synchronize();
      seconds[i] += std::chrono::duration<double>(Clock::now() - start).count();
    }
    if (poisoned) poisoned->after(i);
  }
  if (options.debug_nan) watch.end(outputs);
}

/// Without a record runs stay as they are: what a library does may not be one.
void Plan::State::record() {
  try {
    replay = options.device->record([this] { execute(*slots->run_state()); });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    say_once(text("each kernel is started by itself, as runs cannot be recorded: ", error.what()));
  }
}

/// The first run is a plain one: libraries load their kernels then, which no recording may hold.
void Plan::State::replay_or_execute(const RunState& run) {
  if (has_run && options.records && !is_recorded) {
    is_recorded = true;
    record();
  }
  has_run = true;
  if (replay != nullptr) {
    replay->start();
  } else {
    execute(run);
  }
}

void Plan::State::start(std::span<const Tensor> given, const RunState& run, bool waits) {
  const DenormalsFlushed flushed;
  const auto turn = options.device->take_turn();
  bindings->check_inputs(given, slots ? nullptr : options.device);
  if (!slots) {
    bindings->bind(given, {}, pointers);
    view_outputs(true);
    return perform(run);
  }
  if (waits) {
    slots->upload(given, run);
  } else {
    slots->upload_ahead(given, run);
  }
  perform(*slots->run_state());
  if (waits) options.device->synchronize();
}

void Plan::State::perform(const RunState& run) {
  initializers->refresh();
  if (options.poison || options.debug_nan || profiling) {
    execute_with_checks(run);
  } else {
    replay_or_execute(run);
  }
}

void Plan::State::bind(std::span<const Tensor> given, std::span<const Tensor> wanted) {
  assert(options.binds_outputs);
  bindings->check_inputs(given, options.device);
  bindings->check_outputs(wanted, given, options.device);
  bindings->bind(given, wanted, pointers);
  outputs.assign(wanted.begin(), wanted.end());
  replay = nullptr;
  has_run = is_recorded = false;
}

void Plan::State::run_bound() {
  const DenormalsFlushed flushed;
  Device& device = *options.device;
  const auto turn = device.take_turn();
  const RunState none;
  perform(slots ? *slots->run_state() : none);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    // What is an input or a constant, or shares memory with another output, was not written there.
    const void* const elements = address(graph->outputs()[i]);
    if (elements == outputs[i].data() || outputs[i].bytes() == 0) continue;
    device.copy_async(outputs[i].data(), elements, outputs[i].bytes());
  }
  device.synchronize();
}

Plan::Plan(std::unique_ptr<Graph> graph, const PlanOptions& options)
    : state_(std::make_unique<State>()) {
  state_->graph = std::move(graph);
  state_->options = options;
  state_->options.log = nullptr;  // it need not live as long
  state_->inputs = passes::required_inputs(*state_->graph);
  const bool fuses_chains = options.fuses_chains && !options.debug_nan;
  passes::PassContext context{
      .device = *options.device, .without = fuses_chains ? "" : "fuse_chains", .log = options.log};
  passes::run_passes(passes::kPlanning, *state_->graph, context);
  state_->prepare(context);
  state_->place_operands();
  state_->connect();
  state_->view_outputs(false);
  if (!options.poison) return;
  std::vector<std::size_t> workspaces;
  for (const Step& step : state_->steps) workspaces.push_back(step.kernel->workspace_bytes);
  state_->dead.emplace(state_->layout, state_->arena, *options.device, workspaces);
}

Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

bool Plan::accepts(std::span<const Tensor> inputs) const {
  return state_->bindings->accepts(inputs);
}

void Plan::run(std::span<const Tensor> inputs, const RunState& run) {
  state_->start(inputs, run, true);
}

void Plan::start(std::span<const Tensor> inputs, const RunState& run) {
  assert(state_->options.starts);
  state_->start(inputs, run, false);
}

void Plan::bind(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  state_->bind(inputs, outputs);
}

void Plan::run_bound() {
  state_->run_bound();
}

const Tensor& Plan::output(int index) const {
  return state_->outputs.at(static_cast<std::size_t>(index));
}

int Plan::output_count() const {
  return static_cast<int>(state_->outputs.size());
}

const Graph& Plan::graph() const {
  return *state_->graph;
}

std::size_t Plan::arena_bytes() const {
  return state_->layout.bytes;
}

std::size_t Plan::lower_bound_bytes() const {
  return state_->layout.lower_bound_bytes;
}

std::size_t Plan::step_count() const {
  return state_->steps.size();
}

std::vector<StepProfile> Plan::profile() const {
  std::vector<StepProfile> profiles;
  for (std::size_t i = 0; i < state_->steps.size(); ++i) {
    const auto& [node, kernel, first, inputs, outputs, workspace] = state_->steps[i];
    const double seconds = state_->seconds.empty() ? 0.0 : state_->seconds[i];
    profiles.push_back({node, kernel->name, operand_bytes(*node), seconds});
  }
  return profiles;
}

void Plan::set_profiling(bool on) {
  state_->profiling = on;
  if (on) state_->seconds.assign(state_->steps.size(), 0.0);
}

}  // namespace graft
