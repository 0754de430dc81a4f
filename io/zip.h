#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace graft {

/// A file in an archive, as the central directory describes it.
struct ZipEntry {
  std::string name;
  int method = 0;  ///< 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint64_t compressed_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header_offset = 0;
};

/// Reads a zip archive on one disk. Throws Error{io} if it is damaged: a size or offset leaves the
/// file, entries claim more than the file holds, or an entry claims more than deflate can expand
/// to.
class ZipReader {
 public:
  explicit ZipReader(const std::filesystem::path& path);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// The content, its checksum verified. Throws Error{unsupported} for methods but 0 and 8.
  std::string read(const ZipEntry& entry) const;

 private:
  File file_;
  std::vector<ZipEntry> entries_;
};

/// Writes an archive of stored files, with zip64 fields whatever the size.
class ZipWriter {
 public:
  explicit ZipWriter(const std::filesystem::path& path) : file_(path) {}

  void add(std::string_view name, std::string_view content);
  /// Writes the directory, and lets the file appear.
  void commit();

 private:
  AtomicFile file_;
  std::string directory_;
  std::uint64_t count_ = 0;
};

}  // namespace graft
