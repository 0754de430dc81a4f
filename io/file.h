#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace graft {

/// A regular file, open for reading; its size is taken once. Movable.
class File {
 public:
  /// Throws Error{io} if it is not there, not readable or not a regular file.
  static File open(const std::filesystem::path& path);
  /// The same; throws Error{io} too if it is longer than `max_bytes`.
  static File open(const std::filesystem::path& path, std::uint64_t max_bytes);
  /// Opens a file that a model names: `relative` must be a plain relative path, and nothing on it
  /// below `folder` may be a link, nor may the file have a second (hard) link.
  /// Throws Error{io} otherwise.
  static File open_beneath(const std::filesystem::path& folder, std::string_view relative);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  std::uint64_t size() const { return size_; }
  const std::string& name() const { return name_; }
  /// Reads exactly `count` bytes. Throws Error{io} if [offset, offset + count) leaves the file.
  void read(std::uint64_t offset, void* target, std::size_t count) const;
  /// All of it. Throws Error{memory}, naming the file, if there is not enough.
  std::string read_all() const;

 private:
  /// Takes the descriptor, whatever happens.
  File(int descriptor, const std::filesystem::path& name);

  int descriptor_;
  std::uint64_t size_ = 0;
  std::string name_;
};

/// Memory for bytes of a file. Throws Error{memory}, naming the file, if there is not enough.
std::string make_buffer(std::uint64_t bytes, std::string_view file);

/// The whole file. Throws Error{io} if it is longer than `max_bytes`, before reading it.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

/// A file under a name that no file had. It goes away with the object unless `keep` was called.
class NewFile {
 public:
  /// Takes the first of name(0), name(1), ... that is free. Errors name `shown`.
  /// Throws Error{io} if the folder cannot be written.
  NewFile(const std::function<std::filesystem::path(unsigned)>& name, std::filesystem::path shown);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  const std::filesystem::path& path() const { return path_; }
  /// The access rights of the file, where the file system has them.
  void set_mode(unsigned mode) const;
  /// Throws Error{io}, as when the disk is full.
  void write(const void* bytes, std::size_t count);
  /// Throws Error{io} if the file cannot grow to so many bytes: the disk is too full, or the
  /// process may not write as much. A file system that cannot tell does not.
  void reserve(std::uint64_t bytes) const;
  /// Bytes written.
  std::uint64_t size() const { return written_; }
  /// Syncs and closes the file: its content is there after a loss of power, its name perhaps not.
  /// Throws Error{io} if that fails. To be called once, after the last `write`.
  void finish();
  /// Makes the name last too. Throws Error{io} if that fails.
  void sync_name() const;
  /// The file stays, or has been given another name.
  void keep() { kept_ = true; }

 private:
  std::filesystem::path path_;
  std::filesystem::path shown_;
  int descriptor_ = -1;
  std::uint64_t written_ = 0;
  bool kept_ = false;
};

/// In which a file lies: "." for a name alone.
std::filesystem::path folder_of(const std::filesystem::path& path);
/// The file that is written when `path` is: what links lead to.
std::filesystem::path target_of(std::filesystem::path path);

/// A file that appears complete or not at all: the bytes go to a temporary name in the same folder,
/// and `commit` syncs them, renames and syncs the folder. Without `commit` nothing is left behind
/// and an older file stays as it was.
class AtomicFile {
 public:
  /// Throws Error{io} if the folder or an existing file cannot be written, if `path` is there and
  /// no regular file, or if no file can have that name. A link is followed: its target is replaced.
  explicit AtomicFile(const std::filesystem::path& path);

  /// Where the file will appear: behind all links.
  const std::filesystem::path& path() const { return path_; }

  /// As in NewFile.
  void write(const void* bytes, std::size_t count) { file_->write(bytes, count); }
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  void reserve(std::uint64_t bytes) const { file_->reserve(bytes); }
  std::uint64_t size() const { return file_->size(); }
  /// Lets the file appear; to be called at most once. Throws Error{io}: the older file stays as it
  /// was, unless only the folder could not be synced, which the error says.
  void commit();
  /// The two halves of `commit`: whoever removes what only the older file needs does so after both.
  /// `replace` throws before the rename alone; `sync_name` makes the rename last.
  void replace();
  void sync_name() const;

 private:
  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::optional<NewFile> file_;
};

/// Writes all of `bytes` by an AtomicFile.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Lets `path` be another name of the file `from` of the same folder, in place of what it named, at
/// once and for good as AtomicFile::commit does. False where the file system has no second names
/// for files. Throws Error{io} as AtomicFile does. Neither may be changed in place from then on.
bool link_file(const std::filesystem::path& from, const std::filesystem::path& path);

/// Makes the folder and those above it, where they are not there. Throws Error{io}.
void make_folder(const std::filesystem::path& folder);

}  // namespace graft
