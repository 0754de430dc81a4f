#include "core/base/system_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace graft {

std::string read_system_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string bytes;
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t count = ::read(file, block.data(), block.size());
    if (count <= 0) break;
    bytes.append(block.data(), static_cast<std::size_t>(count));
  }
  ::close(file);
  return bytes;
}

}  // namespace graft
