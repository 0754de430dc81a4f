#include "core/base/memory_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace graft {

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
