#include "core/base/system_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace graft {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

std::string read_system_file(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) return {};
  std::string bytes;
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t count = ::read(file.number, block.data(), block.size());
    if (count <= 0) return bytes;
    bytes.append(block.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace graft
