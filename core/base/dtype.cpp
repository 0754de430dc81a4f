#include "core/base/dtype.h"

#include <array>
#include <limits>

namespace graft {
namespace {

struct Row {
  std::string_view name;
  int bits;
};

constexpr std::array<Row, 29> kRows{{
    {"undefined", 0},  {"f32", 32},  {"u8", 8},       {"i8", 8},         {"u16", 16},
    {"i16", 16},       {"i32", 32},  {"i64", 64},     {"string", 0},     {"bool", 8},
    {"f16", 16},       {"f64", 64},  {"u32", 32},     {"u64", 64},       {"c64", 64},
    {"c128", 128},     {"bf16", 16}, {"f8e4m3fn", 8}, {"f8e4m3fnuz", 8}, {"f8e5m2", 8},
    {"f8e5m2fnuz", 8}, {"u4", 4},    {"i4", 4},       {"f4e2m1", 4},     {"f8e8m0", 8},
    {"u2", 2},         {"i2", 2},    {"f6e2m3", 6},   {"f6e3m2", 6},
}};

const Row& row(DType dtype) {
  return kRows.at(static_cast<std::size_t>(dtype));
}

}  // namespace

std::string_view name(DType dtype) {
  return row(dtype).name;
}

bool is_known_dtype(int onnx_number) {
  return onnx_number > 0 && onnx_number < static_cast<int>(kRows.size());
}

int bits_of(DType dtype) {
  return row(dtype).bits;
}

std::size_t bytes_of(DType dtype, std::int64_t count) {
  const auto bits = static_cast<std::uint64_t>(row(dtype).bits);
  const auto n = static_cast<std::uint64_t>(count);
  if (bits != 0 && n > (std::numeric_limits<std::int64_t>::max() - 7) / bits) {
    fail(ErrorKind::shape, "a tensor of ", count, " ", dtype, " elements does not fit in memory");
  }
  return static_cast<std::size_t>((n * bits + 7) / 8);
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

bool is_integer(DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return true;
    default:
      return false;
  }
}

}  // namespace graft
