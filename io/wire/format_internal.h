#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "io/wire/message.h"

namespace graft::onnx::wire {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

/// Which form a value has, as its tag says.
enum Form : unsigned { varint = 0, eight_bytes = 1, length = 2, four_bytes = 5 };

inline constexpr std::size_t kLargestVarint = 10;

inline Form form_of(Kind kind) {
  switch (kind) {
    case Kind::string:
    case Kind::message:
      return length;
    case Kind::float32:
      return four_bytes;
    case Kind::float64:
      return eight_bytes;
    default:
      return varint;
  }
}

inline std::uint64_t tag_of(const Field& field) {
  return std::uint64_t{field.number} << 3U | (field.packed ? length : form_of(field.kind));
}

inline std::size_t varint_bytes(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1U)) + 6) / 7;
}

/// The number in a varint, or in its bytes.
template <class T>
std::uint64_t bits_of(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

template <class T>
T from_bits(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

/// Calls use(T()) with the type of a kind of numbers.
template <class Use>
auto with_number(Kind kind, Use&& use) {
  switch (kind) {
    case Kind::int32:
      return use(std::int32_t{});
    case Kind::uint64:
      return use(std::uint64_t{});
    case Kind::float32:
      return use(float{});
    case Kind::float64:
      return use(double{});
    default:
      return use(std::int64_t{});
  }
}

inline std::size_t number_bytes(Kind kind, std::uint64_t bits) {
  const Form form = form_of(kind);
  return form == four_bytes ? 4 : form == eight_bytes ? 8 : varint_bytes(bits);
}

}  // namespace graft::onnx::wire
