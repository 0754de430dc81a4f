#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "tools/graft/numbers.h"
#include "tools/graft/options.h"
#include "tools/graft/train_arguments.h"

namespace graft::cli {
namespace {

template <class Precision>
void add_precision(CLI::App& app, const char* name, Precision& precision,
                   const std::map<std::string, Precision>& names, const char* help) {
  std::string valid;
  for (const auto& [word, value] : names) valid += (valid.empty() ? "" : "|") + word;
  const auto choose = [names, valid, name, &precision](const std::string& text) {
    const auto at = names.find(text);
    if (at == names.end()) {
      throw CLI::ValidationError(name, "'" + text + "' is none of " + valid);
    }
    precision = at->second;
  };
  app.add_option_function<std::string>(name, choose, help)->type_name(valid);
}

/// "NAME[:SETTING=NUMBER]...". Throws Error{argument} naming what is not understood.
Optimizer parse_optimizer(const std::string& written) {
  std::vector<std::string> words = CLI::detail::split(written, ':');
  Optimizer optimizer = optimizer_from_name(words.front());
  for (const std::string& word : std::span(words).subspan(1)) {
    const std::size_t split = std::min(word.find('='), word.size());
    const std::optional<float> value =
        number_in<float>(word.substr(std::min(split + 1, word.size())));
    if (!value) {
      fail(ErrorKind::argument, "--optimizer '", written, "': '", word,
           "' is no setting, wanted one like epsilon=1e-4");
    }
    set_setting(optimizer, word.substr(0, split), *value);
  }
  return optimizer;
}

}  // namespace

void add_arguments(CLI::App& app, OptimizerArguments& arguments) {
  const OptionGroup group(app, "Update");
  app.add_option("--optimizer,--optim", arguments.name,
                 "how gradients change parameters; settings follow, as "
                 "adam:beta2=0.99:epsilon=1e-4 (default: by the model)")
      ->type_name(one_of(optimizer_names()));
  add_by_pattern(
      app, "--lr,--learning-rate",
      "learning rate, or 'auto' (of graft train): as graft lr-find finds (default: by the "
      "optimizer); also of those parameters whose whole name matches",
      [&arguments](const std::string& plain, const std::vector<ByPattern>& others) {
        arguments.finds_lr = plain == "auto";
        arguments.lr.reset();
        if (!plain.empty() && !arguments.finds_lr) {
          arguments.lr = number_of(plain, "--lr", "a number or auto");
        }
        arguments.rates.clear();
        for (const auto& [pattern, value] : others) {
          arguments.rates.push_back({.pattern = pattern, .lr = number_of(value, "--lr")});
        }
      })
      ->type_name("NUMBER|auto|PATTERN=NUMBER");
  app.add_option("--momentum", arguments.momentum,
                 "of sgd (default: 0.9 of graft train and lr-find, else 0) and rmsprop");
  add_by_pattern(app, "--weight-decay,--wd",
                 "share of a weight that decays; also of those that match alone",
                 [&arguments](const std::string& plain, const std::vector<ByPattern>& others) {
                   arguments.weight_decay.reset();
                   if (!plain.empty()) arguments.weight_decay = number_of(plain, "--weight-decay");
                   arguments.decays.clear();
                   for (const auto& [pattern, value] : others) {
                     arguments.decays.push_back(
                         {.pattern = pattern, .weight_decay = number_of(value, "--weight-decay")});
                   }
                 })
      ->type_name("NUMBER|PATTERN=NUMBER");
  app.add_flag("--nesterov", arguments.nesterov, "Nesterov's momentum, of sgd");
  add_arguments(app, arguments.state_precision);
}

Optimizer make_optimizer(const OptimizerArguments& arguments, float sgd_lr, float sgd_momentum) {
  Optimizer optimizer = parse_optimizer(arguments.name.empty() ? "sgd" : arguments.name);
  SGD* const sgd = std::get_if<SGD>(&optimizer);
  if (sgd != nullptr) {
    sgd->lr = sgd_lr;
    if (arguments.name.find("momentum=") == std::string::npos) sgd->momentum = sgd_momentum;
    sgd->nesterov = sgd->nesterov || arguments.nesterov;
  } else if (arguments.nesterov) {
    fail(ErrorKind::argument, "--nesterov is for sgd, the optimizer is ", arguments.name);
  }
  if (arguments.finds_lr && !arguments.lr) {
    fail(ErrorKind::argument, "--lr auto is for graft train; give a number");
  }
  if (arguments.lr) set_learning_rate(optimizer, *arguments.lr);
  if (arguments.momentum) set_momentum(optimizer, *arguments.momentum);
  if (arguments.weight_decay) set_weight_decay(optimizer, *arguments.weight_decay);
  check(optimizer);
  return optimizer;
}

std::vector<ParameterGroup> make_groups(const OptimizerArguments& arguments) {
  std::vector<ParameterGroup> groups = arguments.rates;
  groups.insert(groups.end(), arguments.decays.begin(), arguments.decays.end());
  return groups;
}

void add_memory_argument(CLI::App& app, std::size_t& budget) {
  const OptionGroup group(app, "Machine");
  app.add_option("--memory,--memory-budget", budget,
                 "most bytes for activations, gradients and scratch memory, as 512M or 2G: what "
                 "does not fit is computed again (default: no limit; above 64 MB, what is cheap to "
                 "compute again is not kept)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 50));
}

void add_arguments(CLI::App& app, ScheduleArguments& arguments) {
  const OptionGroup group(app, "Update");
  add_by_pattern(app, "--schedule,--lr-schedule",
                 "how the rate changes over updates; PATTERN=NAME: of those that match",
                 [&arguments](const std::string& plain, const std::vector<ByPattern>& others) {
                   if (!plain.empty()) arguments.name = plain;
                   arguments.others = others;
                 })
      ->type_name(one_of(schedule_names()))
      ->default_str(arguments.name);
  app.add_option("--warmup,--warmup-steps", arguments.warmup,
                 "updates in which the rate rises from 0")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  app.add_option("--gamma", arguments.gamma,
                 "factor of the rate: of step, every --every updates (default 0.1); of "
                 "exponential, every update (default: the last rate is 1 % of the first)");
  app.add_option("--every", arguments.every, "of step: updates (default: a third of all)");
}

Schedule make_schedule(const ScheduleArguments& arguments, std::int64_t total_updates) {
  Schedule schedule = schedule_from_name(arguments.name);
  const bool is_step = schedule.kind == Schedule::Kind::step;
  const bool is_exponential = schedule.kind == Schedule::Kind::exponential;
  if (arguments.gamma && !is_step && !is_exponential) {
    fail(ErrorKind::argument, "--gamma is for step and exponential, the schedule is ",
         arguments.name);
  }
  if (arguments.every && !is_step) {
    fail(ErrorKind::argument, "--every is for step, the schedule is ", arguments.name);
  }
  schedule.warmup = arguments.warmup.value_or(0);
  if (is_step) {
    schedule.every = arguments.every.value_or(std::max<std::int64_t>(1, (total_updates + 2) / 3));
  }
  const auto updates = static_cast<double>(std::max<std::int64_t>(total_updates, 1));
  if (is_exponential) schedule.gamma = static_cast<float>(std::pow(0.01, 1.0 / updates));
  if (arguments.gamma) schedule.gamma = *arguments.gamma;
  schedule.factor(0, total_updates);  // throws if a setting makes no sense
  return schedule;
}

namespace {

/// The schedules of some parameters, with those of the settings for all that they have.
std::vector<ParameterGroup> scheduled_groups(const ScheduleArguments& arguments,
                                             std::int64_t total_updates) {
  std::vector<ParameterGroup> groups;
  for (const auto& [pattern, name] : arguments.others) {
    ScheduleArguments own{.name = name, .warmup = arguments.warmup};
    const Schedule::Kind kind = schedule_from_name(name).kind;
    const bool is_step = kind == Schedule::Kind::step;
    if (is_step || kind == Schedule::Kind::exponential) own.gamma = arguments.gamma;
    if (is_step) own.every = arguments.every;
    groups.push_back({.pattern = pattern, .schedule = make_schedule(own, total_updates)});
  }
  return groups;
}

}  // namespace

void add_arguments(CLI::App& app, StatePrecision& precision) {
  add_precision(app, "--state-precision", precision,
                {{"f32", StatePrecision::f32}, {"bf16", StatePrecision::bf16}},
                "of what the optimizer keeps for each parameter; bf16 takes half the memory and is "
                "rounded stochastically");
}

void add_arguments(CLI::App& app, Precision& precision) {
  const OptionGroup group(app, "Machine");
  add_precision(app, "--precision", precision,
                {{"f32", Precision::f32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}},
                "of matrix products and convolutions; sums are f32; tf32: on cards");
}

void add_arguments(CLI::App& app, ParameterArguments& arguments) {
  const OptionGroup group(app, "Parameters");
  app.add_option("--trainable", arguments.trainable,
                 "train only parameters whose whole name matches this regular expression")
      ->type_name("PATTERN");
  app.add_option("--freeze", arguments.freeze, "but none whose whole name matches this one")
      ->type_name("PATTERN");
  const auto tie = [&](const std::vector<std::string>& names) {
    if (names.size() < 2) {
      throw CLI::ValidationError("--tied", "'" + names.front() + "' is one name, wanted NAME,NAME");
    }
    arguments.tied.push_back(names);
  };
  app.add_option_function<std::vector<std::string>>(
         "--tied", tie, "initializers that are one parameter (equal, or transposed)")
      ->delimiter(',')
      ->type_name("NAME,NAME")
      ->trigger_on_parse();
}

namespace {

void add_data_options(CLI::App& app, TrainArguments& arguments) {
  const OptionGroup group(app, "Data");
  app.add_flag("--augment", arguments.augment, "random crops (padding 4) and mirror images");
  app.add_option("--validate,--validation", arguments.validate,
                 "data to measure on after each epoch, or 'none' (default: the test split of "
                 "--data where it has one)")
      ->type_name("SPEC");
}

void add_record_options(CLI::App& app, TrainArguments& arguments) {
  const OptionGroup group(app, "Measures and runs");
  add_metrics_argument(app, arguments.metrics);
  app.add_option("--monitor", arguments.monitor,
                 "what the best epoch is best by: loss, validation_accuracy, validation_f1, ... "
                 "(default: validation_accuracy, or else a loss)")
      ->type_name("NAME");
  limit_to(*app.add_option("--keep", arguments.keep, "weights to write")->capture_default_str(),
           {"last", "best"});
  app.add_option("--early-stopping", arguments.early_stopping,
                 "end after so many epochs without a better one")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--reduce-on-plateau", arguments.reduce_on_plateau,
                 "a tenth of the rate after so many epochs without a better one")
      ->check(CLI::Range(1, 1 << 30));
  add_arguments(app, arguments.run);
}

void add_update_options(CLI::App& app, TrainArguments& arguments) {
  add_arguments(app, arguments.optimizer);
  add_arguments(app, arguments.schedule);
  const OptionGroup group(app, "Update");
  app.add_option("--epochs", arguments.epochs, "passes over the data")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--accumulate,--accumulation-steps", arguments.accumulate,
                 "batches whose gradients make one update")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--clip-norm,--max-grad-norm", arguments.clip_norm,
                 "largest norm of all gradients together");
  app.add_option("--clip-value", arguments.clip_value, "largest magnitude of a gradient's element");
  add_seed_argument(app, arguments.seed, "of the order of samples, augmentation and Dropout");
}

/// Of what mpirun or srun starts (docs/cluster.md).
void add_rank_options(CLI::App& app, TrainArguments& arguments) {
  const OptionGroup group(app, "Several processes");
  app.add_option("--sync-every", arguments.sync_every,
                 "updates that each process makes by itself before they average parameters, for "
                 "slow networks; 1: all updates are joint")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 30));
  app.add_flag("--sync-bn", arguments.sync_bn,
               "average running statistics with each update, not only after each epoch");
  add_precision(app, "--wire-precision", arguments.wire_precision,
                {{"f32", WirePrecision::f32}, {"bf16", WirePrecision::bf16}},
                "in which gradients travel; bf16 is half the bytes, summed up in f32");
  app.add_flag("--shard-state", arguments.shard_state,
               "each process keeps the optimizer's state of its share of the parameters, and "
               "updates these for all");
}

/// What changes of the parameters that train, and when.
void add_stage_options(CLI::App& app, TrainArguments& arguments) {
  add_arguments(app, arguments.stages);
  const OptionGroup group(app, "Parameters");
  app.add_option("--ema", arguments.ema,
                 "measure and write averages of the weights that decay so, as 0.999; checkpoints "
                 "hold both")
      ->check(between(0.0, 0.999999))
      ->type_name("DECAY");
}

}  // namespace

void add_arguments(CLI::App& app, TrainArguments& arguments) {
  app.add_option("MODEL", arguments.model, "an ONNX file")->required();
  app.add_option("--out,-o", arguments.out, "the ONNX file to write")
      ->required()
      ->type_name("FILE");
  add_arguments(app, arguments.data);
  add_data_options(app, arguments);
  add_arguments(app, arguments.loss);
  {
    const OptionGroup group(app, "Loss");
    app.add_option("--label-smoothing", arguments.loss.label_smoothing,
                   "share of the target that is spread over all classes, of cross_entropy")
        ->check(between(0.0, 0.999));
  }
  add_update_options(app, arguments);
  add_arguments(app, arguments.parameters);
  add_stage_options(app, arguments);
  add_record_options(app, arguments);
  add_arguments(app, arguments.compute);
  add_rank_options(app, arguments);
  add_memory_argument(app, arguments.memory);
  add_arguments(app, arguments.precision);
  app.add_flag("--debug-nan", arguments.debug_nan,
               "stop at the first node that makes a NaN or an infinity, and name it; slow");
  app.add_flag("--dry-run", arguments.dry_run,
               "make one step, say what training would take and write, and write nothing");
  app.add_flag("--json", arguments.json, "print JSON lines");
}

namespace {

std::int64_t batches_of(const TrainArguments& arguments, std::int64_t samples) {
  return (samples + arguments.data.batch - 1) / arguments.data.batch;
}

std::vector<ParameterGroup> all_groups(const TrainArguments& arguments, std::int64_t total_updates,
                                       std::int64_t samples) {
  std::vector<ParameterGroup> groups = make_groups(arguments.optimizer);
  for (ParameterGroup& group : scheduled_groups(arguments.schedule, total_updates)) {
    groups.push_back(std::move(group));
  }
  for (ParameterGroup& group : late_groups(arguments.stages, arguments.epochs,
                                           batches_of(arguments, samples), arguments.accumulate)) {
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::int64_t total_updates(const TrainArguments& arguments, std::int64_t samples) {
  const std::int64_t batches = batches_of(arguments, samples);
  const std::int64_t updates = batches * arguments.epochs / arguments.accumulate;
  if (updates == 0 && arguments.epochs > 0) {
    fail(ErrorKind::argument, "--accumulate ", arguments.accumulate,
         " takes more batches than the ", batches * arguments.epochs,
         " that there are: nothing would be updated");
  }
  return updates;
}

TrainOptions make_options(const TrainArguments& arguments, const Loss& loss, std::int64_t samples) {
  // What LeNet trains well with.
  constexpr float kSgdRate = 0.05F;
  constexpr float kSgdMomentum = 0.9F;
  TrainOptions options;
  options.loss = loss;
  options.optimizer = make_optimizer(arguments.optimizer, kSgdRate, kSgdMomentum);
  options.total_updates = total_updates(arguments, samples);
  options.schedule = make_schedule(arguments.schedule, options.total_updates);
  options.groups = all_groups(arguments, options.total_updates, samples);
  options.layer_decay = arguments.stages.layer_decay;
  options.ema = arguments.ema;
  options.trainable = arguments.parameters.trainable;
  options.freeze = arguments.parameters.freeze;
  options.tied = arguments.parameters.tied;
  options.output = arguments.loss.output;
  options.device = arguments.compute.device;
  options.fallback = arguments.compute.fallback;
  options.precision = arguments.precision;
  options.state_precision = arguments.optimizer.state_precision;
  options.clip = {.norm = arguments.clip_norm, .value = arguments.clip_value};
  options.accumulate = arguments.accumulate;
  options.sync_every = arguments.sync_every;
  options.sync_bn = arguments.sync_bn;
  options.wire_precision = arguments.wire_precision;
  options.shard_state = arguments.shard_state;
  options.memory_budget = arguments.memory;
  options.seed = arguments.seed;
  options.debug_nan = arguments.debug_nan;
  return options;
}

}  // namespace graft::cli
