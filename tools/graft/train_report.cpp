#include "tools/graft/train_report.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/graft/format_internal.h"
#include "tools/graft/signals.h"
#include "tools/graft/summary.h"
#include "tools/graft/train_summary.h"
#include "tools/graft/verbosity.h"
#include "train/monitor.h"

namespace graft::cli {
namespace {

/// The first name of the tie that holds `name`: a follower trains when its leader does.
const std::string& leader_of(const std::string& name,
                             const std::vector<std::vector<std::string>>& tied) {
  for (const std::vector<std::string>& group : tied) {
    if (std::ranges::find(group, name) != group.end()) return group.front();
  }
  return name;
}

void print_line(const std::string& head, const std::string& rest) {
  std::cout << head << wrapped(rest, head.size(), text_columns()) << std::endl;
}

std::string measured(const Evaluation& validation) {
  std::string all = "validation loss " + fixed(validation.loss, 4);
  if (validation.accuracy) all += ", accuracy " + percent(*validation.accuracy);
  for (const auto& [name, value] : validation.metrics) all += ", " + name + " " + fixed(value, 4);
  return all;
}

void add_numbers(const Evaluation& validation, nlohmann::ordered_json& line) {
  for (const auto& [name, value] : numbers_of(validation)) line[name] = value;
}

nlohmann::ordered_json groups_json(const std::vector<UpdateGroup>& groups) {
  auto list = nlohmann::ordered_json::array();
  for (const UpdateGroup& group : groups) {
    const auto schedule = static_cast<std::size_t>(group.schedule.kind);
    list.push_back({{"parameters", group.parameters},
                    {"learning_rate", shortest_json(group.lr)},
                    {"schedule", schedule_names().at(schedule)},
                    {"start", group.start}});
    if (group.weight_decay) list.back()["weight_decay"] = shortest_json(*group.weight_decay);
  }
  return list;
}

nlohmann::ordered_json epoch_json(const EpochReport& report) {
  nlohmann::ordered_json line{{"event", "epoch"}, {"epoch", report.epoch}, {"loss", report.loss}};
  if (report.accuracy) line["accuracy"] = *report.accuracy;
  if (report.validation) add_numbers(*report.validation, line);
  line["samples"] = report.samples;
  line["seconds"] = report.seconds;
  return line;
}

}  // namespace

void TrainReport::start(const Model& model, const TrainStep& step, const TrainOptions& options,
                        const std::string& why) const {
  std::vector<std::string> frozen;
  const auto& trained = step.parameter_names();
  for (const Value* value : model.graph().initializers()) {
    const std::string& leader = leader_of(value->name(), arguments_.parameters.tied);
    if (is_float(value->dtype()) && std::ranges::find(trained, leader) == trained.end()) {
      frozen.push_back(value->name());
    }
  }
  if (arguments_.json) {
    print_json({{"event", "start"},
                {"loss_name", options.loss.name},
                {"optimizer", name(*options.optimizer)},
                {"learning_rate", shortest_json(learning_rate(*options.optimizer))},
                {"schedule", arguments_.schedule.name},
                {"warmup", options.schedule.warmup},
                {"trainable", trained},
                {"frozen", frozen},
                {"parameters", step.parameter_count()},
                {"ranks", or_alone(options.communicator).size()},
                {"groups", groups_json(step.groups())},
                {"ema", shortest_json(options.ema)}});
    return;
  }
  if (verbosity().quiet) return;
  print_train_summary(std::cout, model, step, frozen, options, why);
  std::cout.flush();
}

void TrainReport::folder(const std::string& path, bool is_resumed) const {
  if (arguments_.json) {
    print_json({{"event", "run"}, {"run", path}, {"resumed", is_resumed}});
  } else if (!verbosity().quiet) {
    std::cout << (is_resumed ? "going on with run " : "run ") << path << std::endl;
  }
}

void TrainReport::nothing_left(int epochs_done) const {
  std::cerr << "graft: warning: " << epochs_done << (epochs_done == 1 ? " epoch is" : " epochs are")
            << " done already, --epochs is " << arguments_.epochs
            << ": nothing is trained; give a larger --epochs" << std::endl;
}

void TrainReport::before(const Evaluation& validation) const {
  if (arguments_.json) {
    nlohmann::ordered_json line{{"event", "validation"}, {"epoch", 0}};
    add_numbers(validation, line);
    print_json(line);
    return;
  }
  if (!verbosity().quiet) print_line("before: ", measured(validation));
}

void TrainReport::epoch(const EpochReport& report) const {
  if (arguments_.json) {
    print_json(epoch_json(report));
    return;
  }
  if (verbosity().quiet) return;
  std::string line = "loss " + fixed(report.loss, 4);
  if (report.accuracy) line += ", accuracy " + percent(*report.accuracy);
  if (report.validation) line += "; " + measured(*report.validation);
  line += "; " + fixed(report.seconds, 1) + " s";
  print_line(text("epoch ", report.epoch, '/', arguments_.epochs, ": "), line);
}

void TrainReport::compare(const Evaluation& before, const Evaluation& after) const {
  const bool is_worse = before.accuracy && after.accuracy ? *after.accuracy < *before.accuracy
                                                          : after.loss > before.loss;
  if (!is_worse) return;
  std::cerr << "graft: warning: training made the model worse: " << measured(before) << " before, "
            << measured(after) << " after; try a smaller --lr, or --keep best" << std::endl;
}

void TrainReport::end(const TrainStep& step) const {
  const bool is_written = step.updates() > 0 || !stop_asked();
  if (arguments_.json) {
    print_json({{"event", "end"},
                {"out", is_written ? arguments_.out : ""},
                {"updates", step.updates()},
                {"interrupted", stop_asked()}});
  } else if (is_written && !verbosity().quiet) {
    std::cout << "wrote " << arguments_.out << std::endl;
  }
  if (!is_written) {
    std::cerr << "graft: interrupted before the first update; " << arguments_.out
              << " is not written" << std::endl;
  } else if (stop_asked()) {
    std::cerr << "graft: interrupted after " << step.updates() << " updates; saved "
              << arguments_.out << std::endl;
  }
}

Teller::Teller(const TrainReport& report, const DataLoader* validation)
    : report_(report), validation_(validation), bar_(!verbosity().quiet) {}

void Teller::start_measurement() {
  if (validation_ != nullptr) measured_ = bar_.counting("validation", *validation_);
}

void Teller::on_start(graft::Run& run) {
  if (run.position.epoch >= run.epochs) report_.nothing_left(run.position.epoch);
  start_measurement();
}

void Teller::on_step(graft::Run& /*run*/, const Progress& progress) {
  bar_.show(progress);
  is_behind_step_ = true;
  if (progress.batch == progress.batches) start_measurement();
}

void Teller::on_batch() {
  if (!std::exchange(is_behind_step_, false) && measured_) measured_();
}

void Teller::on_validation(graft::Run& run, const Evaluation& validation) {
  bar_.clear();
  if (run.position.epoch == 0) report_.before(validation);
}

void Teller::on_epoch(graft::Run& run, const EpochReport& epoch) {
  bar_.clear();
  report_.epoch(epoch);
  before_ = run.position.before;
  after_ = epoch.validation;
}

void Teller::on_end(graft::Run& /*run*/) {
  bar_.clear();
  if (before_ && after_) report_.compare(*before_, *after_);
}

void Teller::on_error(graft::Run& /*run*/, const Error& /*error*/) {
  bar_.clear();
}

void Teller::problem(const std::string& text) {
  bar_.clear();
  has_problems_ = true;
  std::cerr << "graft: warning: " << text << "; training goes on" << std::endl;
}

}  // namespace graft::cli
