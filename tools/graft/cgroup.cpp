#include "tools/graft/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

/// Nothing where the file is not there or says "max" or -1.
std::optional<double> limit_in(const fs::path& file, int place = 0) {
  std::ifstream stream(file);
  std::string word;
  for (int i = 0; i <= place; ++i) stream >> word;
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  if (!stream || end == word.c_str() || number < 0.0) return std::nullopt;
  return number;
}

template <class T>
void narrow(std::optional<T>& limit, std::optional<T> other) {
  if (other) limit = limit ? std::min(*limit, *other) : *other;
}

std::optional<double> quotient(std::optional<double> quota, std::optional<double> period) {
  if (!quota || !period || *period <= 0.0) return std::nullopt;
  return *quota / *period;
}

/// Version 1 says "no limit" by a number of pages near 2^63.
std::optional<std::uint64_t> bytes_in(const fs::path& file) {
  constexpr double kNoLimit = 4e18;
  const std::optional<double> bytes = limit_in(file);
  if (!bytes || *bytes > kNoLimit) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

/// Calls `look` with the folder of the group and those above it, up to `root`.
template <class Look>
void climb(const fs::path& root, const std::string& group, Look look) {
  fs::path folder = fs::path(group).relative_path();
  while (!folder.empty()) {
    look(root / folder);
    folder = folder.parent_path();
  }
  look(root);
}

}  // namespace

CgroupLimits read_cgroup_limits(const fs::path& membership, const fs::path& mount) {
  CgroupLimits limits;
  std::ifstream groups(membership);
  // Lines are ID:CONTROLLERS:PATH; version 2 has the one with no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = std::min(line.find(':'), line.size());
    const std::size_t second = std::min(line.find(':', first + 1), line.size());
    if (second == line.size()) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      climb(mount, group, [&](const fs::path& folder) {
        narrow(limits.cores,
               quotient(limit_in(folder / "cpu.max"), limit_in(folder / "cpu.max", 1)));
        narrow(limits.memory_bytes, bytes_in(folder / "memory.max"));
      });
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      climb(mount / controllers, group, [&](const fs::path& folder) {
        narrow(limits.cores, quotient(limit_in(folder / "cpu.cfs_quota_us"),
                                      limit_in(folder / "cpu.cfs_period_us")));
      });
    } else if (controllers == "memory") {
      climb(mount / controllers, group, [&](const fs::path& folder) {
        narrow(limits.memory_bytes, bytes_in(folder / "memory.limit_in_bytes"));
      });
    }
  }
  return limits;
}

}  // namespace graft::cli
