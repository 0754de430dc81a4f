#include "tests/fuzz/bytes/folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>

namespace graft::fuzz {

const testing::TempFolder& folder() {
  static const testing::TempFolder folder;
  return folder;
}

KeptFile::KeptFile(const std::string& name)
    : path_(folder().path() / name),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
  if (file_ < 0) throw std::runtime_error("cannot make " + path_.string());
}

KeptFile::~KeptFile() {
  ::close(file_);
}

const std::filesystem::path& KeptFile::write(std::string_view content) const {
  const auto bytes = static_cast<ssize_t>(content.size());
  if (::pwrite(file_, content.data(), content.size(), 0) != bytes || ::ftruncate(file_, bytes) != 0)
    throw std::runtime_error("cannot write " + path_.string());
  return path_;
}

}  // namespace graft::fuzz
