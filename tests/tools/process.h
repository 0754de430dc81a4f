#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace graft::testing {

struct Outcome {
  /// What the process returned; 128 + signal when a signal ended it.
  int code = -1;
  std::string out;
  std::string error;
  /// The most memory that it held at once.
  std::size_t peak_bytes = 0;
  /// Of all its threads, in the system too.
  double cpu_seconds = 0;
};

/// A program that runs beside the test; its output goes to files.
class Process {
 public:
  /// Starts `command`: the program's path, then its arguments.
  explicit Process(const std::vector<std::string>& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// What it has written to stdout so far.
  std::string output() const;
  /// Waits until that holds `part`, for two minutes at most; whether it does.
  bool says(const std::string& part) const;
  void signal(int number) const;
  /// Whether the signal would be handed to a function of the program.
  bool handles(int signal) const;
  Outcome wait();

 private:
  std::filesystem::path folder_;
  int id_ = -1;
};

/// Asks until the condition holds, for two minutes at most; whether it does.
bool wait_until(const std::function<bool()>& condition);

Outcome run(const std::vector<std::string>& command);
/// Starts the graft of this build.
Process start_graft(std::vector<std::string> arguments);
/// Runs it.
Outcome run_graft(std::vector<std::string> arguments);
/// A line for a shell that runs it.
std::string graft_line(const std::vector<std::string>& arguments);
/// Runs it in a shell, with more of a line before and behind it.
Outcome run_in_shell(const std::string& before, const std::vector<std::string>& arguments,
                     const std::string& after = "");
/// The path of an example of this build; empty when examples were not built.
std::string example(const std::string& name);

}  // namespace graft::testing
