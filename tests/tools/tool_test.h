#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/data/test_files.h"
#include "tests/tools/process.h"

// Tests of the command line are in this namespace, so that they need not name what they all use.
namespace graft::testing {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// A folder of its own for each test, with what the verbs work on.
class ToolTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  /// MNIST's four files with images of `size` x `size`, one class after the other: class c is
  /// bright in row c, so that a net learns it at once. Returns the data spec.
  std::string write_mnist(int samples = 64, int size = 12, int classes = 10) const;

  /// A fresh mlp for those images; returns its path.
  std::string write_mlp(int size = 12, int classes = 10) const;

  std::string read(const std::string& name) const;

  TempFolder folder_;
};

/// Matches an Outcome with this exit code whose stderr is one line that holds `part`.
MATCHER_P2(FailsWith, code, part, "") {
  const std::string& error = arg.error;
  *result_listener << "code " << arg.code << ", stderr: " << error;
  return arg.code == code && error.starts_with("graft: ") && error.find('\n') == error.size() - 1 &&
         error.find(part) != std::string::npos;
}

MATCHER(Succeeds, "") {
  *result_listener << "code " << arg.code << ", stderr: " << arg.error;
  return arg.code == 0;
}

/// What `--json` printed, a value a line.
std::vector<nlohmann::json> json_lines(const Outcome& outcome);

}  // namespace graft::testing
