#include "data/cifar.h"

#include <cstdint>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "data/byte_images.h"
#include "data/gzip.h"

namespace graft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPixelBytes = std::size_t{3} * 32 * 32;
constexpr std::size_t kRecordBytes = 1 + kPixelBytes;

/// The paths without ".gz", sorted; each file once even when it is there both ways.
std::set<fs::path> training_files(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  std::set<fs::path> found;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    fs::path path = entry->path();
    if (path.extension() == ".gz") path.replace_extension();
    const std::string file_name = path.filename().string();
    if (file_name.starts_with("data_batch_") && file_name.ends_with(".bin")) found.insert(path);
  }
  if (error) fail(ErrorKind::io, folder.string(), ": ", error.message());
  if (found.empty()) fail(ErrorKind::io, folder.string(), ": holds no data_batch_*.bin[.gz]");
  return found;
}

std::int64_t record_count(const DataFile& file) {
  if (file.size() == 0 || file.size() % kRecordBytes != 0) {
    fail(ErrorKind::io, file.path().string(), ": holds ", file.size(), " bytes, wanted records of ",
         kRecordBytes, "; it is cut off or not CIFAR-10");
  }
  return static_cast<std::int64_t>(file.size() / kRecordBytes);
}

}  // namespace

std::shared_ptr<Dataset> cifar10(const fs::path& folder, Split split) {
  const std::set<fs::path> names = split == Split::train
                                       ? training_files(folder)
                                       : std::set<fs::path>{folder / "test_batch.bin"};
  std::vector<DataFile> files;
  std::int64_t total = 0;
  for (const fs::path& path : names) {
    total += record_count(files.emplace_back(plain_or_gzip(path)));
  }
  const Tensor images = Tensor::empty(DType::u8, Shape{total, 3, 32, 32});
  const Tensor labels = Tensor::empty(DType::u8, Shape{total});
  std::uint8_t* pixels = images.values<std::uint8_t>().data();
  std::uint8_t* label = labels.values<std::uint8_t>().data();
  for (DataFile& file : files) {
    for (std::int64_t i = record_count(file); i > 0; --i) {
      file.read(label++, 1);
      file.read(pixels, kPixelBytes);
      pixels += kPixelBytes;
    }
    file.expect_end();
  }
  return byte_images(
      images, labels,
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
      folder.string());
}

}  // namespace graft
