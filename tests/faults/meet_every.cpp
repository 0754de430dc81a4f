#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "core/base/error.h"
#include "tests/faults/faults.h"

namespace graft::testing {
namespace {

constexpr int kWrong = 1;
constexpr int kDone = 2;
constexpr unsigned kMostSeconds = 60;  // a busy machine lets a process wait

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

/// A call that is interrupted is made again, and no clock decides about anything.
bool may_fail(Fault fault) {
  return fault != Fault::interrupted_call && fault != Fault::short_call &&
         fault != Fault::clock_ahead && fault != Fault::clock_back;
}

/// What is wrong with the work when the fault comes at `number`; empty if nothing is. `last`: the
/// work ended before the fault came.
std::string problem_of(Fault fault, std::uint64_t number, const Work& work, bool& last) {
  if (work.prepare) work.prepare();
  std::string error;
  std::string problem;
  const std::ptrdiff_t files = open_files();
  const std::int64_t blocks = live_blocks();
  arm(fault, number);
  try {
    work.run();
    last = disarm() < number;
  } catch (const Error& thrown) {
    disarm();
    error = thrown.what();
  } catch (const std::bad_alloc&) {
    disarm();
    error = "out of memory";
  } catch (const std::exception& thrown) {
    disarm();
    problem = std::string("another exception came out: ") + thrown.what();
  }
  const std::int64_t more_blocks = live_blocks() - blocks - (error.capacity() > 15 ? 1 : 0);
  if (problem.empty() && more_blocks > 0) problem = text(more_blocks, " blocks were not freed");
  if (problem.empty() && open_files() != files) problem = "a file was not closed";
  if (problem.empty() && !may_fail(fault)) problem = error;
  if (problem.empty()) problem = work.check(error);
  return problem;
}

/// In a process of its own. Returns its exit code, or 128 + the signal that ended it.
int run_in_child(Fault fault, std::uint64_t number, const Work& work, std::string& problem) {
  int ends[2];
  if (::pipe(ends) != 0) return kWrong;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kMostSeconds);
    bool last = false;
    const std::string found = problem_of(fault, number, work, last);
    if (::write(ends[1], found.data(), found.size()) < 0) ::_exit(kWrong);
    ::_exit(!found.empty() ? kWrong : last ? kDone : 0);
  }
  ::close(ends[1]);
  char buffer[500];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    problem.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// All of the first ones, then fewer and fewer, of odd and even numbers.
std::uint64_t after(std::uint64_t number) {
  static const bool all = std::getenv("GRAFT_ALL_FAULTS") != nullptr;
  return number + 1 + (all ? 0 : number / 12);
}

}  // namespace

int meet_every(Fault fault, const Work& work) {
  int tried = 0;
  int wrong = 0;
  for (std::uint64_t number = 1; wrong < 20;) {
    std::string problem;
    const int code = run_in_child(fault, number, work, problem);
    if (code == kDone) break;
    ++tried;
    if (fault == Fault::killed && code == kKilledCode && work.after_kill)
      problem = work.after_kill();
    const bool ended_as_wanted = code == 0 || (fault == Fault::killed && code == kKilledCode);
    if (!ended_as_wanted || !problem.empty()) {
      ++wrong;
      ADD_FAILURE() << "fault " << number << ": ended with code " << code << ": " << problem;
    }
    const bool are_many =
        fault == Fault::no_memory || fault == Fault::clock_ahead || fault == Fault::clock_back;
    number = are_many ? after(number) : number + 1;
  }
  return tried;
}

}  // namespace graft::testing
