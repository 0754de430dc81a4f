#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <new>

#include "tools/graft/arguments.h"
#include "tools/graft/options.h"
#include "tools/graft/test_case.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

struct TestArguments {
  std::vector<std::string> folders;
  Tolerance tolerance;
  ComputeArguments compute;
};

/// The folder itself, or those below it, that hold a model.onnx; in the order of their names.
std::vector<fs::path> find_cases(const fs::path& folder) {
  std::vector<fs::path> cases;
  try {
    if (fs::exists(folder / "model.onnx")) return {folder};
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().filename() == "model.onnx") cases.push_back(entry.path().parent_path());
    }
  } catch (const fs::filesystem_error& error) {
    fail(ErrorKind::io, folder.string(), ": ", error.code().message());
  }
  if (cases.empty()) fail(ErrorKind::io, folder.string(), ": no model.onnx in it or below it");
  std::ranges::sort(cases);
  return cases;
}

CaseResult run_case(const fs::path& folder, const TestArguments& arguments) {
  try {
    return fs::exists(folder / "training.json")
               ? run_training_case(folder, arguments.compute)
               : run_backend_case(folder, arguments.compute, arguments.tolerance);
  } catch (const Error& error) {
    return failed(text(name(error.kind()), ": ", error.what()));
  } catch (const std::bad_alloc&) {
    return failed("memory: out of memory");
  } catch (const fs::filesystem_error& error) {
    return failed(text("io: ", error.what()));
  }
}

ExitCode test(const TestArguments& arguments) {
  apply(arguments.compute);
  std::vector<fs::path> cases;
  for (const std::string& folder : arguments.folders) {
    for (fs::path& one : find_cases(folder)) cases.push_back(std::move(one));
  }
  constexpr std::array<const char*, 3> kWords{"passed", "failed", "skipped"};
  std::array<int, 3> counts{};
  for (const fs::path& folder : cases) {
    const CaseResult result = run_case(folder, arguments);
    const auto outcome = static_cast<std::size_t>(result.outcome);
    ++counts[outcome];
    std::string reason = result.reason;
    std::ranges::replace(reason, '\n', ' ');
    std::cout << kWords[outcome] << "  " << folder.string() << (reason.empty() ? "" : ": ")
              << reason << std::endl;
  }
  std::cout << counts[0] << " passed, " << counts[1] << " failed, " << counts[2] << " skipped\n";
  return counts[1] > 0 ? bad_input : ok;
}

}  // namespace

Run add_test(CLI::App& app) {
  const auto arguments = std::make_shared<TestArguments>();
  app.add_option("DIR", arguments->folders, "folders with a model.onnx, or folders of such")
      ->required();
  constexpr double kMost = 1e300;
  app.add_option("--rtol", arguments->tolerance.relative,
                 "tolerance of backend tests, relative to what is expected")
      ->capture_default_str()
      ->check(between(0.0, kMost));
  app.add_option("--atol", arguments->tolerance.absolute, "absolute tolerance of backend tests")
      ->capture_default_str()
      ->check(between(0.0, kMost));
  add_arguments(app, arguments->compute);
  return [arguments] { return test(*arguments); };
}

}  // namespace graft::cli
