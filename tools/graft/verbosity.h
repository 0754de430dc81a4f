#pragma once

namespace graft::cli {

/// How much a verb says beside its results, for the whole process.
struct Verbosity {
  /// --quiet: results and errors only.
  bool quiet = false;
  /// --verbose: names in full.
  bool verbose = false;
};

Verbosity& verbosity();

}  // namespace graft::cli
