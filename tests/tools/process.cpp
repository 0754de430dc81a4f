#include "tests/tools/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>

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
  id_ = fork();
  if (id_ == 0) {
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    // Out of memory must come back as an error under the address sanitizer too.
    setenv("GRAFT_NO_RUN", "1", 1);  // unless the test names a folder
    setenv("ASAN_OPTIONS", "allocator_may_return_null=1", 1);
    execv(words[0], words.data());
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

Outcome run_graft(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), GRAFT_BINARY);
  return run(arguments);
}

std::string example(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(GRAFT_EXAMPLES) / name;
  return std::filesystem::exists(path) ? path.string() : std::string();
}

}  // namespace graft::testing
