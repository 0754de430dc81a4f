#include "core/base/memory_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace graft {

std::string size_text(std::uint64_t bytes) {
  const std::string plain = std::to_string(bytes) + " bytes";
  constexpr std::uint64_t kBase = 1024;
  std::uint64_t count = bytes;
  std::size_t unit = 0;
  constexpr std::array kUnits{"", "K", "M", "G", "T"};
  for (; unit + 1 < kUnits.size() && count > 0 && count % kBase == 0; ++unit) count /= kBase;
  return unit == 0 ? plain : std::to_string(count) + kUnits[unit] + " (" + plain + ")";
}

std::uint64_t resident_bytes() {
  std::ifstream sizes("/proc/self/statm");  // in pages: all, resident, ...
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  sizes >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

}  // namespace graft
