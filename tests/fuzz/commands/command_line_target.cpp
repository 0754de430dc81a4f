// Command lines, one argument a line, in a folder that holds a model, a table and an array.
#include "tools/graft/command_line.h"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <vector>

#include "core/layers/nets.h"
#include "io/npy.h"
#include "io/onnx.h"
#include "tests/core/other_limits.h"
#include "tests/data/test_files.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

/// The folder that programs run in, with small files; the one before comes back with the end.
class WorkingFolder {
 public:
  WorkingFolder() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
    folder_.write("data.csv", "a,b,label\n1,2,0\n3,4,1\n5,6,0\n");
    const Model net = make_net("mlp", {1, 1, 2}, 2, 1);
    onnx::save(net, "model.onnx");
    npy::save("x.npy", Tensor::full(DType::f32, {1, 1, 1, 2}, 0.5));
  }
  ~WorkingFolder() { std::filesystem::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  testing::TempFolder folder_;
  std::filesystem::path before_;
};

/// What a stream gets while it lives.
class Captured {
 public:
  explicit Captured(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
  ~Captured() {
    stream_.rdbuf(before_);
    stream_.clear();
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostream& stream_;
  std::ostringstream text_;
  std::streambuf* before_;
};

std::vector<std::string> lines(std::string_view bytes) {
  std::vector<std::string> lines;
  std::istringstream in{std::string(bytes)};
  for (std::string line; std::getline(in, line);) lines.push_back(line.substr(0, line.find('\0')));
  return lines;
}

/// Verbs that end soon on small files. The others measure time or run until they are told to end.
bool is_quick(const std::vector<std::string>& arguments) {
  constexpr std::string_view kQuick[] = {"new",        "inspect", "edit",   "train",    "eval",
                                         "predict",    "plot",    "report", "run",      "devices",
                                         "completion", "man",     "--help", "--version"};
  return !arguments.empty() && std::ranges::find(kQuick, arguments[0]) != std::end(kQuick);
}

/// Whether it leads out of the folder, or asks for much.
bool is_refused(const std::string& argument) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  int digits = 0;
  for (const char c : argument) {
    digits = is_digit(c) ? digits + 1 : 0;
    if (digits > 2) return true;
  }
  return argument.find('/') != std::string::npos || argument.find("..") != std::string::npos ||
         argument.find("fashion") != std::string::npos || argument.size() > 200 ||
         argument.find("e+") != std::string::npos;
}

}  // namespace

std::span<const Target> command_targets() {
  static constexpr Target kTargets[] = {{"command_line", run_command_line}};
  return kTargets;
}

void run_command_line(std::string_view bytes) {
  std::vector<std::string> arguments = lines(bytes);
  if (!is_quick(arguments) || std::ranges::any_of(arguments, is_refused)) return;
  if (arguments[0] == "train") arguments.emplace_back("--dry-run");
  arguments.insert(arguments.begin(), "graft");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  const testing::OtherLimits limits(graft::limits());  // --allow changes them
  const WorkingFolder folder;
  const Captured out(std::cout);
  const Captured errors(std::cerr);
  const int code = cli::command_line(static_cast<int>(arguments.size()), pointers.data());
  require(errors.text().find("internal: ") == std::string::npos, errors.text());
  require(code >= 0 && code < 100, "the exit code " + std::to_string(code));
  require(code == 0 || !errors.text().empty(), "a failure without a word");
}

}  // namespace graft::fuzz
