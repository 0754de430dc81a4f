#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/model.h"

namespace CLI {
class App;
}

// What `graft edit` cuts, replaces, inserts and joins, in the order in which it does.
namespace graft::cli {

struct SurgeryArguments {
  std::vector<std::string> from;
  std::vector<std::string> to;
  std::string truncate;
  std::optional<std::int64_t> replace_head;
  std::string output;
  std::vector<std::string> insert_after;
  std::vector<std::string> insert_before;
  std::string append;
  std::string after;
  std::string init;
  std::uint64_t seed = 0;
  std::string merge;
  std::vector<std::string> connect;
  std::string merge_prefix;
  std::vector<std::string> rename;
  std::string prefix;
};

/// What `cut` does, and what `operate` does: the help has the repairs between them.
void add_cut_arguments(CLI::App& app, SurgeryArguments& arguments);
void add_operate_arguments(CLI::App& app, SurgeryArguments& arguments);
/// Whether none of them asks for anything.
bool is_empty(const SurgeryArguments& arguments);
/// Cuts the model, the first that is done. Throws as the edits do, and Error{argument}, naming the
/// option, for what cannot be read.
void cut(Model& model, const SurgeryArguments& arguments);
/// All that comes after: heads, layers, another model, names. Throws as `cut` does, and says on
/// stdout what became of a head.
void operate(Model& model, const SurgeryArguments& arguments);

}  // namespace graft::cli
