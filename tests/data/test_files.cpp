#include "tests/data/test_files.h"

#include <stdlib.h>

#include <fstream>
#include <stdexcept>

namespace graft::testing {
namespace {

std::string little_endian(std::uint32_t value, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += static_cast<char>((value >> (8 * i)) & 0xFFU);
  return result;
}

std::uint32_t crc32(std::string_view content) {
  std::uint32_t crc = ~0U;
  for (const char c : content) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

}  // namespace

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "graft_data_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempFolder::write(const std::string& name, std::string_view content) const {
  const std::filesystem::path path = path_ / name;
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  return path;
}

std::string bytes(std::initializer_list<int> values) {
  std::string result;
  for (const int value : values) result += static_cast<char>(value);
  return result;
}

std::string idx(int type, std::initializer_list<std::uint32_t> dims, std::string_view data) {
  std::string result = bytes({0, 0, type, static_cast<int>(dims.size())});
  for (const std::uint32_t dim : dims) {
    const std::string stored = little_endian(dim, 4);
    result.append(stored.rbegin(), stored.rend());
  }
  return result.append(data);
}

std::string gzip(std::string_view content) {
  const auto size = static_cast<std::uint32_t>(content.size());
  std::string result = bytes({0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255});
  result += bytes({1}) + little_endian(size, 2) + little_endian(~size, 2);
  return result.append(content) + little_endian(crc32(content), 4) + little_endian(size, 4);
}

std::filesystem::path training_cases() {
  return std::filesystem::path(GRAFT_SOURCE_DIR) / "tests" / "training_cases";
}

std::filesystem::path shared_folder() {
  const char* const folder = std::getenv("GRAFT_SHARED");
  return folder != nullptr ? folder : "../shared";
}

}  // namespace graft::testing
