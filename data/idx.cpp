#include "data/idx.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "data/gzip.h"

namespace graft {
namespace {

DType element_type(std::uint8_t code, const DataFile& file) {
  switch (code) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0B:
      return DType::i16;
    case 0x0C:
      return DType::i32;
    case 0x0D:
      return DType::f32;
    case 0x0E:
      return DType::f64;
    default:
      fail(ErrorKind::io, file.path().string(), ": idx element type ", static_cast<int>(code),
           " is unknown, wanted 8 (u8), 9 (i8), 11 (i16), 12 (i32), 13 (f32) or 14 (f64)");
  }
}

/// Swaps numbers stored with the highest byte first into this machine's order.
template <class T>
void from_big_endian(std::span<T> values) {
  if constexpr (std::endian::native == std::endian::little && sizeof(T) > 1) {
    for (T& value : values) {
      auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
      std::ranges::reverse(bytes);
      value = std::bit_cast<T>(bytes);
    }
  }
}

std::vector<std::int64_t> read_dims(DataFile& file, std::size_t rank) {
  std::vector<std::uint32_t> stored(rank);
  file.read(stored.data(), rank * sizeof(std::uint32_t));
  from_big_endian(std::span(stored));
  return {stored.begin(), stored.end()};
}

/// Bytes of all elements, or more than `limit` when the product goes beyond it.
std::uint64_t data_bytes(std::span<const std::int64_t> dims, std::uint64_t element_bytes,
                         std::uint64_t limit) {
  if (std::ranges::find(dims, 0) != dims.end()) return 0;
  std::uint64_t bytes = element_bytes;
  for (const std::int64_t dim : dims) {
    if (bytes > limit / static_cast<std::uint64_t>(dim)) return limit + 1;
    bytes *= static_cast<std::uint64_t>(dim);
  }
  return bytes;
}

}  // namespace

Tensor read_idx(const std::filesystem::path& path) {
  DataFile file(path);
  std::array<std::uint8_t, 4> magic{};
  file.read(magic.data(), magic.size());
  if (magic[0] != 0 || magic[1] != 0 || magic[3] == 0) {
    fail(ErrorKind::io, path.string(), ": not an idx file: starts with bytes ",
         static_cast<int>(magic[0]), " ", static_cast<int>(magic[1]), " ",
         static_cast<int>(magic[2]), " ", static_cast<int>(magic[3]),
         ", wanted 0 0 TYPE RANK with a rank above 0");
  }
  const DType dtype = element_type(magic[2], file);
  const std::vector<std::int64_t> dims = read_dims(file, magic[3]);
  const std::uint64_t header_bytes = magic.size() + 4 * dims.size();
  const std::uint64_t available = file.size() - std::min(file.size(), header_bytes);
  const auto element_bytes = static_cast<std::uint64_t>(bits_of(dtype) / 8);
  if (data_bytes(dims, element_bytes, available) != available) {
    std::string list;
    for (const std::int64_t dim : dims) list += (list.empty() ? "" : ",") + std::to_string(dim);
    fail(ErrorKind::io, path.string(), ": the header declares ", dtype, "[", list, "], but ",
         available, " bytes follow it; the file is cut off or damaged");
  }
  Tensor result = Tensor::empty(dtype, Shape(dims));
  file.read(result.data(), result.bytes());
  file.expect_end();
  visit_dtype(NumericTypes{}, dtype, [&]<class T>() { from_big_endian(result.values<T>()); });
  return result;
}

}  // namespace graft
