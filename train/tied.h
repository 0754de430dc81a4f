#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace graft {

/// Two initializers that are one parameter. Exporters write a shared weight twice: as it is, and
/// transposed where a Gemm or MatMul wants it so.
struct Tie {
  std::string leader;    ///< trains
  std::string follower;  ///< takes over the leader's content after each update
  bool transposed;       ///< follower = leader^T
  Tensor follower_content;
};

/// Whether both hold the same elements, or one the other's transpose.
bool are_copies(const Tensor& a, const Tensor& b);

/// Makes `graph` (in the newest form) read the leader wherever it read a follower. Each group of
/// names is one parameter; the first leads. Returns one tie a follower.
/// Throws Error{argument} if a name is no float initializer, occurs twice, or if a follower holds
/// neither the leader's content nor its transpose.
std::vector<Tie> tie_initializers(Graph& graph,
                                  const std::vector<std::vector<std::string>>& groups);

/// Adds the nodes that write `updated_leader`, the leader's new content, to the follower.
void update_follower(Graph& graph, const Tie& tie, Value* updated_leader);

}  // namespace graft
