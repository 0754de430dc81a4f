#include "tools/graft/defaults.h"

#include <algorithm>
#include <array>

#include "tools/graft/file_notes.h"

namespace graft::cli {
namespace {

/// Plain SGD hardly moves attention, and loses its way in recurrence.
bool wants_adam(const Model& model) {
  constexpr std::array<std::string_view, 6> kOps{
      "LayerNormalization", "Attention", "LSTM", "GRU", "RNN", "RMSNormalization"};
  return std::ranges::any_of(model.graph().nodes(), [&](const auto& node) {
    return std::ranges::any_of(kOps, [&](std::string_view op) { return node->is(op); });
  });
}

}  // namespace

bool is_fresh(const Model& model) {
  return model.producer_name == "graft" && note_of(model, kTrainedNote).empty();
}

std::string choose_defaults(const Model& model, std::int64_t updates, TrainArguments& arguments) {
  constexpr float kFineRate = 1e-4F;
  constexpr float kFineSgdRate = 1e-3F;
  constexpr float kAdamRate = 1e-3F;
  constexpr std::int64_t kMostWarmup = 500;
  constexpr std::int64_t kWarmupShare = 10;  // a tenth of all updates
  OptimizerArguments& chosen = arguments.optimizer;
  const bool wants_sgd = chosen.momentum || chosen.nesterov;  // which AdamW does not have
  const bool is_new = is_fresh(model);
  const bool takes_sgd = wants_sgd || (is_new && !wants_adam(model));
  std::string why;
  if (chosen.name.empty()) {
    chosen.name = takes_sgd ? "sgd" : "adamw";
    why = is_new ? "by default for a fresh net" : "by default for a file that may be trained";
    if (!chosen.lr && !takes_sgd) chosen.lr = is_new ? kAdamRate : kFineRate;
    if (!arguments.schedule.warmup && !takes_sgd) {
      arguments.schedule.warmup = std::min(kMostWarmup, updates / kWarmupShare);
    }
  }
  const bool is_sgd = chosen.name == "sgd" || chosen.name.starts_with("sgd:");
  if (is_sgd && !is_new && !chosen.lr) chosen.lr = kFineSgdRate;
  return why;
}

}  // namespace graft::cli
