#pragma once

#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/attention_geometry_internal.h"
#include "core/ops/kernel.h"

namespace graft {

/// f32 by tiles of 64 queries and some keys: the general case.
Kernel make_attention_by_tiles(KernelRequest& request);
Kernel make_attention_grad_by_tiles(KernelRequest& request);

/// Where the bias stands among the inputs.
inline constexpr int kAttentionBias = 3;
inline constexpr int kAttentionGradBias = 6;

/// Tasks that are shared out to threads, each thread with scratch memory of its own.
struct AttentionPieces {
  /// `multiply_adds` of all tasks together: few are not worth a thread.
  AttentionPieces(std::int64_t task_count, double multiply_adds)
      : tasks(task_count),
        count(std::min<std::int64_t>(
            {task_count, thread_count(), 1 + static_cast<std::int64_t>(multiply_adds / 65536)})) {}

  /// Calls body(piece, first task, last task).
  template <class Body>
  void for_each(Body&& body) const {
    parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t piece = first; piece < last; ++piece) {
        body(piece, tasks * piece / count, tasks * (piece + 1) / count);
      }
    });
  }

  std::int64_t tasks;
  std::int64_t count;
};

}  // namespace graft
