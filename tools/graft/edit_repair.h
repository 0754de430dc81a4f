#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/model.h"

namespace CLI {
class App;
}

// What `graft edit` does so that a model trains as its user wants: adapters, what is frozen, and
// what exporters took away.
namespace graft::cli {

struct RepairArguments {
  bool strip = false;
  bool tie = false;
  /// The layers; empty: those that look like it.
  std::optional<std::string> unfuse;
  std::string calibrate;
  std::string normalize;
  std::vector<std::string> norms;
  std::vector<std::string> dropout;
  std::vector<std::string> freeze;
  std::vector<std::string> unfreeze;
  std::vector<std::string> lora;
  std::int64_t rank = 8;
  std::optional<double> alpha;
  std::string apply_lora;
  std::string save_lora;
  bool merge_lora = false;
};

void add_arguments(CLI::App& app, RepairArguments& arguments);

/// Whether there is anything to do.
bool is_asked(const RepairArguments& arguments);

/// Does it, in the order of the help, and says on stdout what was done. `seed` draws adapters.
void repair(Model& model, const RepairArguments& arguments, std::uint64_t seed);

/// Writes what is written beside the model: adapters.
void write_beside(const Model& model, const RepairArguments& arguments);

}  // namespace graft::cli
