#include "io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/limits.h"

namespace graft {
namespace {

static_assert(std::endian::native == std::endian::little, "zip numbers are read as they lie");

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kLocator64 = 0x07064b50;
constexpr std::size_t kLocalHeaderBytes = 30;
constexpr std::size_t kDirectoryEntryBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kLocatorBytes = 20;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::uint32_t kIn64 = 0xffffffff;  // "see the zip64 field"
constexpr std::uint16_t kExtra64 = 1;
constexpr std::uint16_t kEncrypted = 1;
/// Deflate's best ratio is 1032 to 1.
constexpr std::uint64_t kMaxExpansion = 1040;
constexpr std::size_t kMaxStep = std::size_t{1} << 30;  // zlib counts in 32 bits

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) {
    fail(ErrorKind::io, "zip: a record is cut off");
  }
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string read_range(const File& file, std::uint64_t offset, std::uint64_t count) {
  if (offset > file.size() || count > file.size() - offset) {
    fail(ErrorKind::io, "zip: ", count, " bytes from byte ", offset, " leave the file of ",
         file.size());
  }
  std::string bytes = make_buffer(count, file.name());
  file.read(offset, bytes.data(), bytes.size());
  return bytes;
}

struct Directory {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t count;
};

/// The end record is at the end, before a comment of up to 65,535 bytes.
Directory find_directory(const File& file) {
  const std::uint64_t tail_bytes =
      std::min<std::uint64_t>(file.size(), kEndBytes + kLocatorBytes + 0xffff);
  const std::uint64_t tail_offset = file.size() - tail_bytes;
  const std::string tail = read_range(file, tail_offset, tail_bytes);
  const std::string signature("PK\5\6", 4);
  std::size_t end =
      tail.size() < kEndBytes ? std::string::npos : tail.rfind(signature, tail.size() - kEndBytes);
  while (end != std::string::npos &&
         end + kEndBytes + number_at<std::uint16_t>(tail, end + 20) != tail.size()) {
    end = end == 0 ? std::string::npos : tail.rfind(signature, end - 1);
  }
  if (end == std::string::npos) fail(ErrorKind::io, "zip: there is no end record: no zip file");
  Directory directory{number_at<std::uint32_t>(tail, end + 16),
                      number_at<std::uint32_t>(tail, end + 12),
                      number_at<std::uint16_t>(tail, end + 10)};
  if (end < kLocatorBytes || number_at<std::uint32_t>(tail, end - kLocatorBytes) != kLocator64) {
    return directory;
  }
  const std::string end64 =
      read_range(file, number_at<std::uint64_t>(tail, end - kLocatorBytes + 8), kEnd64Bytes);
  if (number_at<std::uint32_t>(end64, 0) != kEnd64) {
    fail(ErrorKind::io, "zip: the zip64 end record is damaged");
  }
  return {number_at<std::uint64_t>(end64, 48), number_at<std::uint64_t>(end64, 40),
          number_at<std::uint64_t>(end64, 32)};
}

/// Takes those of size, compressed size and offset that need it from the zip64 field.
void read_extra64(std::string_view extra, ZipEntry& entry) {
  while (extra.size() >= 4) {
    const auto id = number_at<std::uint16_t>(extra, 0);
    const auto bytes = number_at<std::uint16_t>(extra, 2);
    if (bytes > extra.size() - 4) fail(ErrorKind::io, "zip: an extra field is cut off");
    if (id == kExtra64) {
      const std::string_view field = extra.substr(4, bytes);
      std::size_t at = 0;
      for (std::uint64_t* value : {&entry.bytes, &entry.compressed_bytes, &entry.header_offset}) {
        if (*value != kIn64) continue;
        *value = number_at<std::uint64_t>(field, at);
        at += 8;
      }
      return;
    }
    extra.remove_prefix(4U + bytes);
  }
}

/// Reads the entry at the front of `rest` and steps over it.
ZipEntry next_entry(std::string_view& rest) {
  if (number_at<std::uint32_t>(rest, 0) != kDirectoryEntry || rest.size() < kDirectoryEntryBytes) {
    fail(ErrorKind::io, "zip: the directory is damaged");
  }
  const std::size_t name_bytes = number_at<std::uint16_t>(rest, 28);
  const std::size_t extra_bytes = number_at<std::uint16_t>(rest, 30);
  const std::size_t comment_bytes = number_at<std::uint16_t>(rest, 32);
  const std::size_t total = kDirectoryEntryBytes + name_bytes + extra_bytes + comment_bytes;
  if (total > rest.size()) fail(ErrorKind::io, "zip: the directory is cut off");
  ZipEntry entry;
  entry.name = rest.substr(kDirectoryEntryBytes, name_bytes);
  entry.method = number_at<std::uint16_t>(rest, 10);
  entry.crc = number_at<std::uint32_t>(rest, 16);
  entry.compressed_bytes = number_at<std::uint32_t>(rest, 20);
  entry.bytes = number_at<std::uint32_t>(rest, 24);
  entry.header_offset = number_at<std::uint32_t>(rest, 42);
  if ((number_at<std::uint16_t>(rest, 8) & kEncrypted) != 0) {
    fail(ErrorKind::unsupported, "zip: '", entry.name, "' is encrypted");
  }
  read_extra64(rest.substr(kDirectoryEntryBytes + name_bytes, extra_bytes), entry);
  rest.remove_prefix(total);
  return entry;
}

void check_sizes(const ZipEntry& entry) {
  if (entry.method != 0 && entry.method != Z_DEFLATED) {
    fail(ErrorKind::unsupported, "zip: '", entry.name, "' is packed by method ", entry.method);
  }
  const bool fits = entry.method == 0 ? entry.bytes == entry.compressed_bytes
                                      : entry.bytes / kMaxExpansion <= entry.compressed_bytes;
  if (!fits) {
    fail(ErrorKind::io, "zip: '", entry.name, "' claims ", entry.bytes, " bytes from ",
         entry.compressed_bytes);
  }
}

/// Fills `out` from raw deflate data, both to their ends.
void inflate_all(std::string_view in, std::string& out, const std::string& name) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail(ErrorKind::memory, "zip: no memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  std::size_t taken = 0;
  std::size_t made = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const auto step_in = static_cast<uInt>(std::min(in.size() - taken, kMaxStep));
    const auto step_out = static_cast<uInt>(std::min(out.size() - made, kMaxStep));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data() + taken));
    stream.avail_in = step_in;
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = step_out;
    status = inflate(&stream, Z_NO_FLUSH);  // without progress: Z_BUF_ERROR
    taken += step_in - stream.avail_in;
    made += step_out - stream.avail_out;
  }
  if (status != Z_STREAM_END || made != out.size() || taken != in.size()) {
    fail(ErrorKind::io, "zip: '", name, "' does not inflate to the ", out.size(),
         " bytes that it claims");
  }
}

std::uint32_t checksum(std::string_view bytes) {
  uLong crc = crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kMaxStep);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
    bytes.remove_prefix(piece.size());
  }
  return static_cast<std::uint32_t>(crc);
}

/// What local header and directory entry have in common, from "version needed" on.
void append_common(std::string& record, std::string_view name, std::uint32_t crc,
                   std::size_t extra_bytes) {
  constexpr std::uint16_t kVersion45 = 45;  // zip64
  constexpr std::uint16_t kUtf8Names = 0x800;
  constexpr std::uint32_t kFirstOf1980 = 0x00210000;  // the earliest date: bytes do not change
  append(record, kVersion45);
  append(record, kUtf8Names);
  append<std::uint16_t>(record, 0);  // stored
  append(record, kFirstOf1980);
  append(record, crc);
  append(record, kIn64);
  append(record, kIn64);
  append(record, static_cast<std::uint16_t>(name.size()));
  append(record, static_cast<std::uint16_t>(extra_bytes));
}

}  // namespace

ZipReader::ZipReader(const std::filesystem::path& path) : file_(File::open(path)) {
  const Directory directory = find_directory(file_);
  const std::string bytes = read_range(file_, directory.offset, directory.bytes);
  std::string_view rest = bytes;
  std::uint64_t total = 0;
  std::uint64_t inflated = 0;
  const auto most = static_cast<std::uint64_t>(
      grown(limits().inflated_bytes, limits().inflated_share, file_.size()));
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    entries_.push_back(next_entry(rest));
    const ZipEntry& entry = entries_.back();
    check_sizes(entry);
    // Entries that share bytes could multiply a small file without end.
    if (entry.compressed_bytes > file_.size() - total) {
      fail(ErrorKind::io, "zip: the entries claim more bytes than the file has");
    }
    total += entry.compressed_bytes;
    if (entry.bytes > most - std::min(most, inflated)) {
      fail(ErrorKind::io, "zip: the file of ", file_.size(), " bytes unpacks to ",
           inflated + entry.bytes, " or more; ",
           limit_text("inflated", static_cast<std::int64_t>(most)));
    }
    inflated += entry.bytes;
  }
}

std::string ZipReader::read(const ZipEntry& entry) const {
  const std::string header = read_range(file_, entry.header_offset, kLocalHeaderBytes);
  if (number_at<std::uint32_t>(header, 0) != kLocalHeader) {
    fail(ErrorKind::io, "zip: '", entry.name, "' is not where the directory says");
  }
  // In range: header_offset is, and these add at most 128 KiB.
  const std::uint64_t data_offset = entry.header_offset + kLocalHeaderBytes +
                                    number_at<std::uint16_t>(header, 26) +
                                    number_at<std::uint16_t>(header, 28);
  std::string content = read_range(file_, data_offset, entry.compressed_bytes);
  if (entry.method == Z_DEFLATED) {
    std::string inflated = make_buffer(entry.bytes, entry.name);
    inflate_all(content, inflated, entry.name);
    content = std::move(inflated);
  }
  if (checksum(content) != entry.crc) {
    fail(ErrorKind::io, "zip: the checksum of '", entry.name, "' is wrong");
  }
  return content;
}

void ZipWriter::add(std::string_view name, std::string_view content) {
  if (name.size() > std::numeric_limits<std::uint16_t>::max()) {
    fail(ErrorKind::argument, "zip: a name of ", name.size(), " bytes is too long");
  }
  const std::uint64_t offset = file_.size();
  const std::uint64_t bytes = content.size();
  const std::uint32_t crc = checksum(content);
  std::string header;
  append(header, kLocalHeader);
  append_common(header, name, crc, 20);
  header += name;
  append(header, kExtra64);
  append<std::uint16_t>(header, 16);
  append(header, bytes);
  append(header, bytes);
  file_.write(header);
  file_.write(content);

  append(directory_, kDirectoryEntry);
  append<std::uint16_t>(directory_, 45);  // made by
  append_common(directory_, name, crc, 28);
  append<std::uint16_t>(directory_, 0);  // comment
  append<std::uint16_t>(directory_, 0);  // disk
  append<std::uint16_t>(directory_, 0);  // internal attributes
  append<std::uint32_t>(directory_, 0);  // external attributes
  append(directory_, kIn64);
  directory_ += name;
  append(directory_, kExtra64);
  append<std::uint16_t>(directory_, 24);
  append(directory_, bytes);
  append(directory_, bytes);
  append(directory_, offset);
  ++count_;
}

void ZipWriter::commit() {
  const std::uint64_t offset = file_.size();
  const std::uint64_t bytes = directory_.size();
  std::string end;
  append(end, kEnd64);
  append<std::uint64_t>(end, kEnd64Bytes - 12);
  append<std::uint16_t>(end, 45);
  append<std::uint16_t>(end, 45);
  append<std::uint32_t>(end, 0);  // this disk
  append<std::uint32_t>(end, 0);  // the directory's disk
  append(end, count_);
  append(end, count_);
  append(end, bytes);
  append(end, offset);
  append(end, kLocator64);
  append<std::uint32_t>(end, 0);
  append<std::uint64_t>(end, offset + bytes);
  append<std::uint32_t>(end, 1);  // disks in all
  append(end, kEnd);
  append<std::uint32_t>(end, 0);           // both disks
  append<std::uint32_t>(end, 0xffffffff);  // both counts
  append(end, kIn64);
  append(end, kIn64);
  append<std::uint16_t>(end, 0);  // comment
  file_.write(directory_);
  file_.write(end);
  file_.commit();
}

}  // namespace graft
