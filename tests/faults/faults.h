#pragma once

#include <cstdint>
#include <functional>
#include <string>

// What can go wrong beneath a program, made to happen at a chosen moment. The test program holds
// its own malloc, openat, write, ... in front of the system's (faults.cpp), so that it reaches all
// libraries too.
namespace graft::testing {

enum class Fault {
  no_memory,         ///< the allocation finds none
  failed_call,       ///< the system call fails: no space, a broken disk, no more threads
  interrupted_call,  ///< a signal comes: it reads or writes nothing and is to be made again
  short_call,        ///< it reads or writes one byte of many
  killed,            ///< the process ends just before the system call
  cut_file,          ///< before it is looked at or read, another program cuts the file in half
  longer_file,       ///< the same, but the file gets a kilobyte more
  clock_ahead,       ///< from this question on, all clocks are a day ahead, as after a pause
  clock_back,        ///< from this question on, the time of day is that of yesterday
};

/// The exit code of a process that met `killed`.
constexpr int kKilledCode = 77;

/// From now on the `number`-th allocation or call, counted from 1, meets the fault. 0: none does.
void arm(Fault fault, std::uint64_t number);
/// Ends that. Returns how many allocations or calls there were.
std::uint64_t disarm();
/// Blocks allocated and not freed.
std::int64_t live_blocks();

struct Work {
  /// What is done while the fault happens. It may throw.
  std::function<void()> run;
  /// Says what is wrong with what `run` left; `error` is what it threw, empty if nothing. Not
  /// called behind a fault that killed it if `after_kill` is there.
  std::function<std::string(const std::string& error)> check;
  std::function<std::string()> after_kill = {};
  /// Before each run, in the process that does it.
  std::function<void()> prepare = {};
};

/// Does the work again and again, in a process each, so that each allocation or call of it meets
/// the fault once. Each of these must end within a minute, in success, in a graft::Error or in
/// std::bad_alloc, free what it allocated, close what it opened, and pass the check. Of many
/// hundred allocations and looks at a clock some are tried; all when GRAFT_ALL_FAULTS is in the
/// environment. Allocations of protobuf, nlohmann's JSON and oneDNN do not fail. Returns how many
/// were tried.
int meet_every(Fault fault, const Work& work);

}  // namespace graft::testing
