#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace graft {
namespace {

/// Linux transfers at most about 2 GiB a call.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

std::string errno_text() {
  return std::generic_category().message(errno);
}

int open_retrying(int folder, const char* path, int flags, mode_t mode = 0) {
  int descriptor = -1;
  do {
    descriptor = ::openat(folder, path, flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

void close_quietly(int descriptor) {
  if (descriptor >= 0) ::close(descriptor);
}

/// Splits "a/b/c"; refuses what could lead out of a folder.
std::vector<std::string> components_of(std::string_view relative) {
  if (relative.find('\0') != std::string_view::npos) {
    fail(ErrorKind::io, "the path of a data file holds a zero byte");
  }
  const std::filesystem::path path(relative);
  if (path.empty() || path.is_absolute()) {
    fail(ErrorKind::io, "the path of a data file must be relative to the model's folder, found '",
         relative, "'");
  }
  std::vector<std::string> components;
  for (const auto& component : path) {
    if (component == "..") {
      fail(ErrorKind::io, "the path of a data file leaves the model's folder: '", relative, "'");
    }
    if (component != "." && !component.empty()) components.push_back(component.string());
  }
  if (components.empty()) fail(ErrorKind::io, "'", relative, "' names no file");
  return components;
}

struct stat status_of(int descriptor, const std::string& name) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    fail(ErrorKind::io, "cannot read '", name, "': ", errno_text());
  }
  return status;
}

int sync(int descriptor) {
  int result = 0;
  do {
    result = ::fsync(descriptor);
  } while (result != 0 && errno == EINTR);
  return result;
}

/// A name in the same folder that no file of this process has.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  return path.parent_path() / text(".graft-", ::getpid(), "-", counter++, ".tmp");
}

/// Makes the names in a folder last; allocates nothing. Returns what stopped it, 0 if nothing did;
/// a file system that does not offer it, or a folder that may not be read, stops nothing.
int sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open_retrying(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return 0;
  const int error = sync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return error == EINVAL || error == ENOTSUP ? 0 : error;
}

[[noreturn]] void fail_with(std::string_view action, const std::filesystem::path& path, int error) {
  fail(ErrorKind::io, "cannot ", action, " '", path.string(),
       "': ", std::generic_category().message(error));
}

[[noreturn]] void fail_with_errno(std::string_view action, const std::filesystem::path& path) {
  fail_with(action, path, errno);
}

}  // namespace

File::File(int descriptor, const std::filesystem::path& name) : descriptor_(descriptor) {
  try {
    name_ = name.string();
    const struct stat status = status_of(descriptor_, name_);
    if (!S_ISREG(status.st_mode)) {
      fail(ErrorKind::io, "'", name_, "' is ", S_ISDIR(status.st_mode) ? "a folder" : "no file");
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  } catch (...) {
    close_quietly(descriptor_);
    throw;
  }
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      name_(std::move(other.name_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(name_, other.name_);
  return *this;
}

File::~File() {
  close_quietly(descriptor_);
}

File File::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int descriptor = open_retrying(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK);
  if (descriptor < 0) {
    fail(ErrorKind::io, "cannot open '", path.string(), "': ", errno_text());
  }
  return {descriptor, path};
}

File File::open(const std::filesystem::path& path, std::uint64_t max_bytes) {
  File file = open(path);
  if (file.size() > max_bytes) {
    fail(ErrorKind::io, "'", file.name(), "' has ", file.size(), " bytes, more than the limit of ",
         max_bytes);
  }
  return file;
}

File File::open_beneath(const std::filesystem::path& folder, std::string_view relative) {
  const std::vector<std::string> components = components_of(relative);
  const std::filesystem::path name = folder / relative;
  const std::filesystem::path start = folder.empty() ? "." : folder;
  int descriptor = open_retrying(AT_FDCWD, start.c_str(), O_RDONLY | O_DIRECTORY);
  for (std::size_t i = 0; i < components.size() && descriptor >= 0; ++i) {
    const int flags = i + 1 < components.size() ? O_DIRECTORY : O_NONBLOCK;
    const int next =
        open_retrying(descriptor, components[i].c_str(), O_RDONLY | O_NOFOLLOW | flags);
    const int error = errno;
    ::close(descriptor);
    errno = error;
    descriptor = next;
  }
  if (descriptor < 0) {
    const bool link = errno == ELOOP || errno == ENOTDIR;
    fail(ErrorKind::io, "cannot open data file '", name.string(), "': ", errno_text(),
         link ? " (links are not followed)" : "");
  }
  File file(descriptor, name);
  if (status_of(file.descriptor_, file.name()).st_nlink > 1) {
    fail(ErrorKind::io, "data file '", file.name(),
         "' has a second hard link; copy the file to use it");
  }
  return file;
}

void File::read(std::uint64_t offset, void* target, std::size_t count) const {
  if (offset > size_ || count > size_ - offset) {
    fail(ErrorKind::io, "'", name_, "' has ", size_, " bytes; wanted ", count, " from byte ",
         offset);
  }
  auto* to = static_cast<char*>(target);
  while (count > 0) {
    const ssize_t got =
        ::pread(descriptor_, to, std::min(count, kMaxTransfer), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorKind::io, "cannot read '", name_, "': ", errno_text());
    if (got == 0) fail(ErrorKind::io, "'", name_, "' became shorter while it was read");
    to += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

std::string File::read_all() const {
  std::string bytes = make_buffer(size_, name_);
  read(0, bytes.data(), bytes.size());
  return bytes;
}

std::string make_buffer(std::uint64_t bytes, std::string_view file) {
  try {
    return std::string(bytes, '\0');
  } catch (const std::exception&) {  // bad_alloc or length_error
    fail(ErrorKind::memory, "no memory for ", bytes, " bytes of '", file, "'");
  }
}

std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  return File::open(path, max_bytes).read_all();
}

NewFile::NewFile(const std::function<std::filesystem::path(unsigned)>& name,
                 std::filesystem::path shown)
    : shown_(std::move(shown)) {
  for (unsigned i = 0; descriptor_ < 0; ++i) {
    path_ = name(i);
    descriptor_ = open_retrying(AT_FDCWD, path_.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (descriptor_ < 0 && errno != EEXIST) fail_with_errno("write", shown_);
  }
}

NewFile::~NewFile() {
  close_quietly(descriptor_);
  if (!kept_) ::unlink(path_.c_str());
}

void NewFile::set_mode(unsigned mode) const {
  if (::fchmod(descriptor_, mode) != 0) errno = 0;  // kept as made
}

void NewFile::write(const void* bytes, std::size_t count) {
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t put = ::write(descriptor_, from, std::min(count, kMaxTransfer));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_with_errno("write", shown_);
    from += put;
    written_ += static_cast<std::uint64_t>(put);
    count -= static_cast<std::size_t>(put);
  }
}

void NewFile::reserve(std::uint64_t bytes) const {
  if (bytes == 0) return;
  int result = 0;
  do {
    result = ::fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result == 0) result = ::ftruncate(descriptor_, static_cast<off_t>(written_));
  if (result == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return;
  const int error = errno;
  fail_with(text("write ", bytes, " bytes to"), shown_, error);
}

void NewFile::finish() {
  if (sync(descriptor_) != 0) fail_with_errno("sync", shown_);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_with_errno("write", shown_);
}

void NewFile::sync_name() const {
  const int error = sync_folder(folder_of(path_));
  if (error != 0) fail_with("sync the folder of", shown_, error);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

std::filesystem::path target_of(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::error_code ignored;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, ignored); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);
  }
  return path;
}

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(target_of(path)), folder_(folder_of(path_)) {
  if (!path_.has_filename()) fail(ErrorKind::io, "'", path.string(), "' names no file to write");
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  // A name that is too long, or a link that leads to itself, would be found by the rename alone.
  if (!exists && errno != ENOENT) fail_with_errno("write", path_);
  if (exists && !S_ISREG(status.st_mode)) {
    fail(ErrorKind::io, "cannot write '", path_.string(), "': it is no regular file");
  }
  // The rename would replace a file that its owner has protected.
  if (exists && ::access(path_.c_str(), W_OK) != 0) fail_with_errno("write", path_);
  file_.emplace([&](unsigned) { return temporary_beside(path_); }, path_);
  if (exists) file_->set_mode(status.st_mode & 07777);
}

void AtomicFile::replace() {
  file_->finish();
  if (::rename(file_->path().c_str(), path_.c_str()) != 0) fail_with_errno("write", path_);
  file_->keep();
}

void AtomicFile::sync_name() const {
  const int error = sync_folder(folder_);
  if (error == 0) return;
  fail(ErrorKind::io, "'", path_.string(),
       "' is written, but its folder cannot be synced: ", std::generic_category().message(error),
       "; a loss of power may undo that");
}

void AtomicFile::commit() {
  replace();
  sync_name();
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

bool link_file(const std::filesystem::path& from, const std::filesystem::path& path) {
  const std::filesystem::path temporary = temporary_beside(path);
  if (::link(from.c_str(), temporary.c_str()) != 0) {
    if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK) return false;
    fail_with_errno("write", path);
  }
  const int error = ::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  ::unlink(temporary.c_str());  // there still, if the two were one file already
  if (error != 0) fail_with("write", path, error);
  const int unsynced = sync_folder(folder_of(path));
  if (unsynced != 0) fail_with("sync the folder of", path, unsynced);
  return true;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    fail(ErrorKind::io, "cannot make folder '", folder.string(), "': ", error.message());
  }
}

}  // namespace graft
