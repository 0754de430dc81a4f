#include "tools/graft/train_summary.h"

#include <algorithm>
#include <ostream>
#include <variant>

#include "core/base/parallel.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/summary.h"
#include "tools/graft/verbosity.h"

namespace graft::cli {
namespace {

std::string counted(std::size_t count, const char* one, const char* many) {
  return with_commas(static_cast<std::int64_t>(count)) + ' ' + (count == 1 ? one : many);
}

const Tensor& tensor_of(const Model& model, const std::string& name) {
  return model.graph().find(name)->initializer();
}

std::string groups_of(const Model& model, const std::vector<std::string>& names) {
  std::vector<NamedCount> counts;
  counts.reserve(names.size());
  for (const std::string& name : names) counts.emplace_back(name, tensor_of(model, name).size());
  return grouped(counts);
}

void print_names(std::ostream& out, const Model& model, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    out << "             " << name << ' ' << describe(tensor_of(model, name)) << '\n';
  }
}

/// What all names begin with, up to a separator; of one name, nothing.
std::string common_part(const std::vector<std::string>& names) {
  if (names.size() < 2) return {};
  std::size_t length = names.front().size();
  for (const std::string& name : names) {
    const auto [end, other] = std::ranges::mismatch(names.front(), name);
    length = std::min(length, static_cast<std::size_t>(end - names.front().begin()));
  }
  const std::string common = names.front().substr(0, length);
  return common.substr(0, common.find_last_of("./") + 1);
}

/// "layer1.0.* 4,608 (2)", or by the first parts of names where they have no more in common.
std::string members_text(const Model& model, const UpdateGroup& group) {
  const std::string part = common_part(group.parameters);
  if (part.empty()) return groups_of(model, group.parameters);
  std::int64_t count = 0;
  for (const std::string& name : group.parameters) count += tensor_of(model, name).size();
  return text(part, "* ", with_commas(count), " (", group.parameters.size(), ")");
}

/// How a group differs from the others.
std::string group_text(const UpdateGroup& group, const TrainOptions& options) {
  std::string line = text("learning rate ", group.lr);
  if (group.weight_decay) line += text(", weight decay ", *group.weight_decay);
  if (group.schedule != options.schedule) {
    line += ", " + schedule_names().at(static_cast<std::size_t>(group.schedule.kind));
  }
  if (group.start > 0) line += text(", frozen for ", with_commas(group.start), " updates");
  return line;
}

std::string update_text(const TrainOptions& options) {
  const auto schedule = static_cast<std::size_t>(options.schedule.kind);
  const Optimizer& optimizer = options.optimizer.value();
  const SGD* const sgd = std::get_if<SGD>(&optimizer);
  const bool has_momentum = sgd != nullptr && sgd->momentum != 0.0F;
  std::string line =
      text(name(optimizer), has_momentum ? text(", momentum ", sgd->momentum) : "",
           ", learning rate ", learning_rate(optimizer), ", ", schedule_names().at(schedule));
  if (options.schedule.warmup > 0) line += text(" after ", options.schedule.warmup, " warm-up");
  return line + ", " +
         counted(static_cast<std::size_t>(options.total_updates), "update", "updates");
}

}  // namespace

void print_train_summary(std::ostream& out, const Model& model, const TrainStep& step,
                         const std::vector<std::string>& frozen, const TrainOptions& options,
                         const std::string& why) {
  const std::vector<std::string>& trained = step.parameter_names();
  Summary trains;
  trains.row("trains",
             with_commas(step.parameter_count()) + " numbers in " +
                 counted(trained.size(), "parameter", "parameters") + ":  " +
                 groups_of(model, trained),
             "  ");
  trains.print(out);
  if (verbosity().verbose) print_names(out, model, trained);
  if (!frozen.empty()) {
    Summary rest;
    rest.row("frozen",
             counted(frozen.size(), "tensor", "tensors") + ":  " + groups_of(model, frozen), "  ");
    rest.print(out);
    if (verbosity().verbose) print_names(out, model, frozen);
  }
  Summary how;
  how.row("loss", options.loss.name);
  how.row("update", update_text(options) + (why.empty() ? "" : " (" + why + ")"));
  if (step.groups().size() > 1) {
    for (const UpdateGroup& group : step.groups()) {
      how.row("group", group_text(group, options) + ":  " + members_text(model, group), "  ");
    }
  }
  if (options.ema > 0.0F) {
    how.row("average", text("of the weights, decay ", options.ema, ": measured, and written"));
  }
  const Communicator& ranks = or_alone(options.communicator);
  if (ranks.size() > 1) {
    how.row(
        "ranks",
        text(ranks.size(), ", of which this machine has ", ranks.local_size(), ", with ",
             counted(static_cast<std::size_t>(thread_count()), "thread", "threads"),
             " each; they share each batch",
             options.sync_every > 1
                 ? text(", and average parameters after ", options.sync_every, " updates")
                 : "",
             options.shard_state ? ", and the optimizer's state" : "",
             options.wire_precision == WirePrecision::bf16 ? "; gradients travel in bf16" : ""));
  }
  how.print(out);
}

}  // namespace graft::cli
