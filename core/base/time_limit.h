#pragma once

namespace graft {

/// While one lives, its thread reads or rewrites a model that a file may have made slow on purpose,
/// and may take so long (Limits::import_seconds, of processor time). Within another it does
/// nothing: the outermost counts.
class TimeLimit {
 public:
  TimeLimit();
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
};

/// To be called for each node that is made or looked at: costs nothing worth mentioning.
/// Throws Error{model}, naming the limit, if the time of the thread's TimeLimit is over.
void check_time();

}  // namespace graft
