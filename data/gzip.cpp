#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/limits.h"

namespace graft {
namespace {

namespace fs = std::filesystem;

/// zlib's documentation: deflate packs at most 1032 bytes into one.
constexpr std::uint64_t kMostInflation = 1032;
constexpr std::uint64_t kGzipHeaderAndTrailer = 18;

std::uint64_t regular_file_size(const fs::path& path) {
  std::error_code error;
  // Opening a pipe would wait for its writer, so this comes before any open.
  if (!fs::is_regular_file(path, error)) {
    fail(ErrorKind::io, path.string(), ": ",
         fs::exists(path, error) ? "not a regular file" : "no such file");
  }
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) fail(ErrorKind::io, path.string(), ": ", error.message());
  return size;
}

std::uint64_t inflated_size(const fs::path& path, std::uint64_t file_size) {
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, 4> bytes{};
  const auto read_at = [&](std::uint64_t offset, std::streamsize count) {
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char*>(bytes.data()), count);
    if (!file) fail(ErrorKind::io, path.string(), ": cannot be read");
  };
  if (file_size >= 2) read_at(0, 2);
  if (bytes[0] != 0x1f || bytes[1] != 0x8b) return file_size;
  if (file_size < kGzipHeaderAndTrailer) {
    fail(ErrorKind::io, path.string(), ": gzip file of ", file_size, " bytes, wanted at least ",
         kGzipHeaderAndTrailer, "; it is cut off");
  }
  read_at(file_size - 4, 4);  // RFC 1952: ISIZE, little endian
  std::uint64_t declared = 0;
  for (std::size_t i = 4; i-- > 0;) declared = (declared << 8) | bytes[i];
  if (declared / kMostInflation > file_size) {
    fail(ErrorKind::io, path.string(), ": gzip file of ", file_size, " bytes declares ", declared,
         ", at most ", file_size * kMostInflation, " are possible; it is cut off or forged");
  }
  const std::int64_t most = grown(limits().inflated_bytes, limits().inflated_share, file_size);
  if (declared > static_cast<std::uint64_t>(most)) {
    fail(ErrorKind::io, path.string(), ": gzip file of ", file_size, " bytes unpacks to ", declared,
         "; ", limit_text("inflated", most));
  }
  return declared;
}

void close_stream(void* stream) {
  if (stream != nullptr) gzclose_r(static_cast<gzFile>(stream));
}

}  // namespace

DataFile::DataFile(fs::path path) : path_(std::move(path)), stream_(nullptr, &close_stream) {
  size_ = inflated_size(path_, regular_file_size(path_));
  stream_.reset(gzopen(path_.c_str(), "rb"));
  if (!stream_) fail(ErrorKind::io, path_.string(), ": cannot be opened");
  // zlib takes three times as much, and a file of ten lines needs none of it.
  constexpr std::uint64_t kLeastBytes = 1U << 12;
  constexpr std::uint64_t kMostBytes = 1U << 17;
  gzbuffer(static_cast<gzFile>(stream_.get()),
           static_cast<unsigned>(std::clamp(size_, kLeastBytes, kMostBytes)));
}

std::size_t DataFile::read_some(void* target, std::size_t bytes) {
  auto* const stream = static_cast<gzFile>(stream_.get());
  std::size_t done = 0;
  while (done < bytes) {
    constexpr std::size_t kMostAtOnce = 1U << 30;  // gzread's count is an int
    const auto wanted = static_cast<unsigned>(std::min(bytes - done, kMostAtOnce));
    const int got = gzread(stream, static_cast<char*>(target) + done, wanted);
    int status = Z_OK;
    std::string_view reason = gzerror(stream, &status);
    // A file that ends inside the compressed data still gives what came before, with Z_BUF_ERROR.
    if (got < 0 || (status != Z_OK && status != Z_STREAM_END)) {
      const std::string prefix = path_.string() + ": ";  // which zlib writes as well
      if (reason.starts_with(prefix)) reason.remove_prefix(prefix.size());
      fail(ErrorKind::io, prefix, "damaged or cut off: ", reason);
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void DataFile::read(void* target, std::size_t bytes) {
  const std::size_t got = read_some(target, bytes);
  if (got < bytes) {
    fail(ErrorKind::io, path_.string(), ": ends ", bytes - got, " bytes too early; wanted ", bytes,
         " more bytes, found ", got);
  }
}

void DataFile::expect_end() {
  char extra = 0;
  if (read_some(&extra, 1) > 0) {
    fail(ErrorKind::io, path_.string(), ": goes on after the ", size_,
         " bytes it declares; if it is several gzip files in one, unpack it first");
  }
}

std::string read_text(const fs::path& path) {
  DataFile file(path);
  std::string content(static_cast<std::size_t>(file.size()), '\0');
  file.read(content.data(), content.size());
  file.expect_end();
  return content;
}

fs::path plain_or_gzip(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error)) return path;
  fs::path packed = path;
  packed += ".gz";
  if (fs::exists(packed, error)) return packed;
  fail(ErrorKind::io, path.string(), ": no such file, nor with .gz");
}

}  // namespace graft
