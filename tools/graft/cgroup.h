#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace graft::cli {

/// What the control group of this process (a container, a batch job) lets it have; absent where
/// there is no limit.
struct CgroupLimits {
  std::optional<double> cores;
  std::optional<std::uint64_t> memory_bytes;
};

/// The narrowest limits on the way from the group that `membership` (/proc/self/cgroup) names up to
/// the root, below `mount` (/sys/fs/cgroup); both versions of control groups.
CgroupLimits read_cgroup_limits(const std::filesystem::path& membership = "/proc/self/cgroup",
                                const std::filesystem::path& mount = "/sys/fs/cgroup");

}  // namespace graft::cli
