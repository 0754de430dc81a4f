#pragma once

#include <span>
#include <string>

#include "core/passes/pass_log.h"

namespace graft::cli {

/// What was compiled, and what passes did to it.
struct PassRun {
  std::string title;
  const passes::PassLog& log;
};

/// Prints a table for each run, or a JSON line: time, nodes before and after, and name of each
/// pass, in order; a pass within another is indented.
void print_passes(std::span<const PassRun> runs, bool as_json);

/// Prints the graph behind the pass, each time that it ran, of the first run that has it; the logs
/// must have asked for it. Throws Error{argument} that lists the passes if none has.
void print_graphs_behind(const std::string& pass, std::span<const PassRun> runs);

}  // namespace graft::cli
