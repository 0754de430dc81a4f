#include "train/find_rate.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace graft {
namespace {

void check(const RateSearch& search) {
  if (!(search.lowest > 0.0F && search.highest > search.lowest) || search.steps < 2) {
    fail(ErrorKind::argument, "rates from ", search.lowest, " to ", search.highest, " in ",
         search.steps, " steps, wanted two rates above 0, the lower first, and 2 steps or more");
  }
}

void check(const TrainStep& step) {
  if (step.groups().empty()) {
    fail(ErrorKind::argument, "the trainer has no optimizer, wanted one whose rate is looked for");
  }
  for (const UpdateGroup& group : step.groups()) {
    if (group.schedule.kind == Schedule::Kind::constant && group.schedule.warmup == 0) continue;
    fail(ErrorKind::argument, "the rate of '", group.parameters.front(),
         "' has a schedule of its own, wanted the constant one without warm-up");
  }
}

/// Nothing where the loss is not finite.
std::optional<StepReport> try_step(Trainer& trainer, const Batch& batch) {
  const Trainer::Started started = trainer.start(batch);
  try {
    return trainer.finish(started);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numeric) throw;
    return std::nullopt;
  }
}

/// Calls use(batch) until it returns false, epoch after epoch.
template <class Use>
void for_each_batch(DataLoader& loader, const Use& use) {
  while (true) {
    for (const Batch& batch : loader) {
      if (!use(batch)) return;
    }
  }
}

std::vector<std::pair<float, double>> try_rates(Trainer& trainer, DataLoader& loader,
                                                const RateSearch& search) {
  constexpr double kOld = 0.9;       // of the moving average
  constexpr double kTooLarge = 3.0;  // times the least loss
  std::vector<std::pair<float, double>> tried;
  double average = 0.0;
  double weight = 0.0;
  double least = 0.0;
  std::int64_t uncounted = 0;  // batches in a row
  const double growth =
      std::pow(static_cast<double>(search.highest) / search.lowest, 1.0 / (search.steps - 1));
  for_each_batch(loader, [&](const Batch& batch) {
    const int index = static_cast<int>(tried.size());
    const auto rate = static_cast<float>(search.lowest * std::pow(growth, index));
    trainer.train_step().set_base_learning_rate(rate);
    const std::optional<StepReport> report = try_step(trainer, batch);
    if (!report) return false;
    if (!(report->weight > 0.0)) return ++uncounted < loader.batches();
    uncounted = 0;
    average = kOld * average + (1.0 - kOld) * report->loss;
    weight = kOld * weight + (1.0 - kOld);
    const double smooth = average / weight;
    if (!std::isfinite(smooth)) return false;
    least = tried.empty() ? smooth : std::min(least, smooth);
    tried.emplace_back(rate, smooth);
    return static_cast<int>(tried.size()) < search.steps && smooth <= kTooLarge * std::abs(least);
  });
  return tried;
}

}  // namespace

RateFound find_rate(Trainer& trainer, DataLoader& loader, const RateSearch& search) {
  check(search);
  TrainStep& step = trainer.train_step();
  check(step);
  const TrainState before = clone(step.state());
  const std::int64_t epoch = loader.epoch();
  const auto give_back = [&] {
    step.load_state(before);
    loader.set_epoch(epoch);
  };
  RateFound found;
  try {
    found.tried = try_rates(trainer, loader, search);
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
  if (found.tried.empty()) {
    fail(ErrorKind::numeric,
         "the first loss is not finite; look for values in the data or the weights that are not");
  }
  const auto best = std::ranges::min_element(found.tried, {}, &std::pair<float, double>::second);
  constexpr float kShare = 0.1F;
  found.rate = best->first * kShare;
  return found;
}

}  // namespace graft
