#pragma once

#include <span>
#include <vector>

#include "core/base/at.h"
#include "core/graph/graph.h"
#include "core/graph/number_table.h"
#include "core/ops/operand_table.h"

namespace graft {

/// Memory that one or more values share: an output that views or overwrites its input has none of
/// its own.
struct Storage {
  enum class Place {
    arena,        ///< inside the plan's arena, alive from `first` to `last`
    input,        ///< the caller's tensor for graph input number `input_index`
    initializer,  ///< the initializer's own tensor
    output,       ///< the caller's tensor for graph output number `output_index`
  };
  Place place = Place::arena;
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
  int input_index = -1;
  int output_index = -1;
  const Value* initializer = nullptr;
};

/// Which memory each value lives in.
struct StorageMap {
  std::vector<Storage> storages;
  ValueTable<int> of_value;  // -1: of none

  const Storage& operator[](const Value* value) const { return at(storages, of_value[*value]); }
};

/// The nodes of the graph that a kernel runs for; views need none.
std::vector<const Node*> kernel_nodes(const Graph& graph);

/// Assigns storage to every value; step i is the i-th of `kernel_nodes`. An output overwrites an
/// input in place where its row allows it and nobody reads the input later. Graph outputs live to
/// the end; with `binds_outputs` what would lie in the arena then lies in the caller's tensor for
/// the first of the outputs that share it. All shapes must be known.
/// Throws Error{model} if a variable is read after the node that updates it.
StorageMap assign_storage(const Graph& graph, bool binds_outputs = false);
/// The same for the items in this order.
StorageMap assign_storage(const OperandTable& operands, std::span<const int> order,
                          bool binds_outputs = false);

}  // namespace graft
