#include "core/base/processors.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/system_file.h"
#include "core/base/words.h"

namespace graft {
namespace {

/// The smaller of two limits; 0 is none.
int stricter(int a, int b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

/// Processors for a quota of a period; 0 for none.
int rounded_up(std::int64_t quota, std::int64_t period) {
  constexpr std::int64_t kMost = 1 << 20;
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min(kMost, (quota - 1) / period + 1));
}

std::int64_t number_in(const std::string& path) {
  const std::string file = read_system_file(path);
  std::string_view words = file;
  return take_integer(words);
}

/// cpu.max of version 2: "200000 100000", or "max 100000".
int quota_v2(const std::string& folder) {
  const std::string file = read_system_file(folder + "/cpu.max");
  std::string_view words = file;
  const std::int64_t quota = take_integer(words);
  return rounded_up(quota, take_integer(words));
}

int quota_v1(const std::string& folder) {
  return rounded_up(number_in(folder + "/cpu.cfs_quota_us"),
                    number_in(folder + "/cpu.cfs_period_us"));
}

/// The least that is granted on the way from mount + group up to mount. Within a container the
/// group may be named as its host sees it: what is not there grants anything.
template <class Quota>
int least_on_the_way(const std::string& mount, std::string group, Quota quota) {
  int least = 0;
  for (;;) {
    least = stricter(least, quota(mount + group));
    const std::size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return least;
    group.resize(slash);
  }
}

bool names_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

int processors_by_quota(const std::string& root) {
  const std::string groups = read_system_file(root + "/proc/self/cgroup");
  std::string_view left = groups;
  int least = 0;
  for (std::string_view line; take_line(left, line);) {  // id:controllers:/path
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers(line.substr(first + 1, second - first - 1));
    const std::string group(line.substr(second + 1));
    if (controllers.empty()) {
      least = stricter(least, least_on_the_way(root + "/sys/fs/cgroup", group, quota_v2));
    } else if (names_cpu(controllers)) {
      least = stricter(least, least_on_the_way(root + "/sys/fs/cgroup/cpu", group, quota_v1));
    }
  }
  return least;
}

int processors_of_process() {
  const auto count =
      static_cast<int>(std::thread::hardware_concurrency());  // by affinity, in glibc
  return std::max(stricter(count, processors_by_quota("")), 1);
}

}  // namespace graft
