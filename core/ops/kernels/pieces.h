#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/parallel.h"

namespace graft {

/// Into how many parts to cut each of so many tasks, at most `most`, so that all threads get
/// equally many.
inline std::int64_t even_parts(std::int64_t task_count, std::int64_t most) {
  std::int64_t parts = 1;
  while (parts < most && task_count * parts % thread_count() != 0) ++parts;
  return parts;
}

/// Tasks that are shared out to threads, each thread with scratch memory of its own.
struct Pieces {
  /// `multiply_adds` of all tasks together: few are not worth a thread.
  Pieces(std::int64_t task_count, double multiply_adds)
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
