#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace graft {

/// A regular file read from front to back, inflated on the way when it is gzip (told by its first
/// two bytes, not by its name). All members throw Error{io} that names the file.
class DataFile {
 public:
  /// Throws Error{io} if there is no such regular file, or if it is gzip and declares more bytes
  /// than deflate could pack into its size (1032:1), as a cut-off or forged file does.
  explicit DataFile(std::filesystem::path path);

  /// Bytes that the file holds when inflated: its size, or what its gzip trailer declares.
  /// Safe to allocate.
  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

  /// Throws Error{io} if fewer bytes are left or the compressed data is damaged.
  void read(void* target, std::size_t bytes);
  /// Throws Error{io} if more bytes follow: at the end, that the gzip checksum is wrong shows here.
  void expect_end();

 private:
  /// Returns how many bytes came; fewer than `bytes` only at the end of the file.
  std::size_t read_some(void* target, std::size_t bytes);

  std::filesystem::path path_;
  std::uint64_t size_ = 0;
  std::unique_ptr<void, void (*)(void*)> stream_;
};

/// The whole file as text, inflated when it is gzip. Throws Error{io}.
std::string read_text(const std::filesystem::path& path);

/// `path`, or `path` + ".gz" when only that one is there. Throws Error{io} if neither is.
std::filesystem::path plain_or_gzip(const std::filesystem::path& path);

}  // namespace graft
