#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace graft {
class Graph;
}

namespace graft::passes {

/// What one pass did in one run.
struct PassRecord {
  std::string name;
  /// 0 at the top; a pass that a list holds, which itself is a pass, lies one deeper.
  int depth = 0;
  /// Those of the passes within it are part of it.
  double seconds = 0;
  std::size_t nodes_before = 0;
  std::size_t nodes_after = 0;
  bool changed = false;
  /// The graph behind the pass, as `print` writes it: only of the passes that are asked for.
  std::string graph{};
};

/// Collects what passes do, for people. Lists run without one record nothing.
struct PassLog {
  /// The pass whose graph is wanted; empty: none.
  std::string printed{};
  /// Writes that graph; null: it is not written. Here, so that who asks for none links no printer.
  std::string (*print)(const Graph& graph) = nullptr;
  /// In order; a pass comes before those within it.
  std::vector<PassRecord> records{};
  int depth = 0;
};

}  // namespace graft::passes
