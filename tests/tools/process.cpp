#include "tests/tools/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace graft::testing {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

int open_for_writing(const std::filesystem::path& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

double seconds(const timeval& time) {
  constexpr double kMicro = 1e-6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicro;
}

/// This process's own, but for two.
std::vector<char*> environment() {
  static std::string no_run = "GRAFT_NO_RUN=1";  // unless the test names a folder
  // Out of memory must come back as an error under the address sanitizer too.
  static std::string asan = "ASAN_OPTIONS=allocator_may_return_null=1";
  std::vector<char*> variables{no_run.data(), asan.data()};
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable = *one;
    const bool is_replaced =
        variable.starts_with("GRAFT_NO_RUN=") || variable.starts_with("ASAN_OPTIONS=");
    if (!is_replaced) variables.push_back(*one);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

Process::Process(const std::vector<std::string>& command) {
  std::string name = (std::filesystem::temp_directory_path() / "graft_process_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  folder_ = name;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int out = open_for_writing(folder_ / "out");
  const int error = open_for_writing(folder_ / "error");
  // Before the fork: behind it, memory may be locked by a thread that stayed behind.
  const std::vector<char*> variables = environment();
  id_ = fork();
  if (id_ == 0) {
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    execve(words[0], words.data(), variables.data());
    _exit(127);
  }
  close(out);
  close(error);
}

Process::~Process() {
  if (id_ > 0) {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Process::output() const {
  return read_all(folder_ / "out");
}

bool Process::says(const std::string& part) const {
  return wait_until([&] { return output().find(part) != std::string::npos; });
}

void Process::signal(int number) const {
  kill(id_, number);
}

bool Process::handles(int signal) const {
  const std::string status = read_all("/proc/" + std::to_string(id_) + "/status");
  constexpr std::string_view kCaught = "SigCgt:";
  const std::size_t at = status.find(kCaught);
  if (at == std::string::npos) return false;
  const auto caught = std::strtoull(status.c_str() + at + kCaught.size(), nullptr, 16);
  return (caught >> static_cast<unsigned>(signal - 1) & 1U) != 0;
}

Outcome Process::wait() {
  int status = 0;
  rusage used{};
  wait4(id_, &status, 0, &used);
  id_ = -1;
  constexpr std::size_t kUnit = 1024;  // of ru_maxrss
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), output(),
          read_all(folder_ / "error"), static_cast<std::size_t>(used.ru_maxrss) * kUnit,
          seconds(used.ru_utime) + seconds(used.ru_stime)};
}

Outcome run(const std::vector<std::string>& command) {
  return Process(command).wait();
}

bool wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

Process start_graft(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), GRAFT_BINARY);
  return Process(arguments);
}

Outcome run_graft(std::vector<std::string> arguments) {
  return start_graft(std::move(arguments)).wait();
}

std::string graft_line(const std::vector<std::string>& arguments) {
  std::string line = "'" GRAFT_BINARY "'";
  for (const std::string& argument : arguments) line += " '" + argument + "'";
  return line;
}

Outcome run_in_shell(const std::string& before, const std::vector<std::string>& arguments,
                     const std::string& after) {
  return run({"/bin/sh", "-c", before + graft_line(arguments) + after});
}

std::string example(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(GRAFT_EXAMPLES) / name;
  return std::filesystem::exists(path) ? path.string() : std::string();
}

}  // namespace graft::testing
