#include "core/base/memory_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "core/base/system_file.h"
#include "core/base/words.h"

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
  const std::string sizes = read_system_file("/proc/self/statm");  // in pages: all, resident, ...
  std::string_view words = sizes;
  take_word(words);
  return static_cast<std::uint64_t>(take_integer(words) * sysconf(_SC_PAGESIZE));
}

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

}  // namespace graft
