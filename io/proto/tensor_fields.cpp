#include "io/proto/tensor_fields.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"

namespace graft::onnx {
namespace {

enum class Field { floats, int32s, strings, int64s, doubles, uint64s };
constexpr std::array<std::string_view, 6> kFieldNames{"float_data", "int32_data",  "string_data",
                                                      "int64_data", "double_data", "uint64_data"};

std::array<int, 6> sizes_of(const pb::TensorProto& proto) {
  return {proto.float_data_size(), proto.int32_data_size(),  proto.string_data_size(),
          proto.int64_data_size(), proto.double_data_size(), proto.uint64_data_size()};
}

Field field_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::c64:
      return Field::floats;
    case DType::f64:
    case DType::c128:
      return Field::doubles;
    case DType::i64:
      return Field::int64s;
    case DType::u32:
    case DType::u64:
      return Field::uint64s;
    case DType::string:
      return Field::strings;
    default:
      return Field::int32s;
  }
}

/// Types of 6 bits have an entry each here, though raw_data packs them.
bool is_six_bit(DType dtype) {
  return bits_of(dtype) == 6;
}

/// Bytes of the packed form that one entry holds.
std::size_t entry_bytes(DType dtype) {
  switch (dtype) {
    case DType::c64:
      return 4;
    case DType::c128:
      return 8;
    default:
      return std::max<std::size_t>(1, static_cast<std::size_t>(bits_of(dtype)) / 8);
  }
}

std::uint64_t entries_needed(DType dtype, std::int64_t count) {
  if (dtype == DType::string || is_six_bit(dtype)) return static_cast<std::uint64_t>(count);
  return bytes_of(dtype, count) / entry_bytes(dtype);
}

/// Calls visit with the field's numbers.
template <class Visit>
void visit_field(Field field, pb::TensorProto& proto, Visit&& visit) {
  switch (field) {
    case Field::floats:
      return visit(*proto.mutable_float_data());
    case Field::int32s:
      return visit(*proto.mutable_int32_data());
    case Field::int64s:
      return visit(*proto.mutable_int64_data());
    case Field::doubles:
      return visit(*proto.mutable_double_data());
    case Field::uint64s:
      return visit(*proto.mutable_uint64_data());
    case Field::strings:
      fail(ErrorKind::type, "strings are no bytes");
  }
}

/// Some writers extend small types by sign, some by zeros: both are taken.
template <class Entry>
void check_range(Entry value, unsigned bits, std::string_view who) {
  const auto wide = static_cast<std::int64_t>(value);
  if (wide < -(std::int64_t{1} << (bits - 1)) || wide >= (std::int64_t{1} << bits) ||
      (std::is_unsigned_v<Entry> && wide < 0)) {
    fail(ErrorKind::model, who, ": ", value, " in its data does not fit ", bits, " bits");
  }
}

template <class Entry>
void narrow(const RepeatedNumbers<Entry>& entries, std::size_t width, std::string_view who,
            unsigned char* target) {
  for (const Entry entry : entries) {
    check_range(entry, static_cast<unsigned>(8 * width), who);
    std::memcpy(target, &entry, width);
    target += width;
  }
}

void pack_six_bits(const RepeatedNumbers<std::int32_t>& entries, std::string_view who,
                   std::span<unsigned char> bytes) {
  std::ranges::fill(bytes, static_cast<unsigned char>(0));
  std::size_t bit = 0;
  for (const std::int32_t entry : entries) {
    if (entry < 0) fail(ErrorKind::model, who, ": ", entry, " in its data does not fit 6 bits");
    check_range(entry, 6, who);
    const unsigned shifted = static_cast<unsigned>(entry) << (bit % 8);
    bytes[bit / 8] |= static_cast<unsigned char>(shifted);
    if (shifted > 0xff) bytes[bit / 8 + 1] |= static_cast<unsigned char>(shifted >> 8);
    bit += 6;
  }
}

void unpack_six_bits(std::span<const unsigned char> bytes, std::int64_t count,
                     RepeatedNumbers<std::int32_t>& entries) {
  for (std::size_t bit = 0; count > 0; --count, bit += 6) {
    const std::size_t at = bit / 8;
    const unsigned next = at + 1 < bytes.size() ? bytes[at + 1] : 0U;
    const unsigned both = bytes[at] | next << 8;
    entries.Add(static_cast<std::int32_t>(both >> (bit % 8) & 0x3fU));
  }
}

template <class Entry>
void widen(DType dtype, std::span<const unsigned char> bytes, std::size_t width,
           RepeatedNumbers<Entry>& entries) {
  const bool is_signed = dtype == DType::i8 || dtype == DType::i16;
  const unsigned unused = static_cast<unsigned>(64 - 8 * width);
  entries.Reserve(static_cast<int>(bytes.size() / width));
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    std::uint64_t value = 0;
    std::memcpy(&value, &bytes[at], width);
    if (is_signed)
      value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
    entries.Add(static_cast<Entry>(value));
  }
}

}  // namespace

int count_typed_fields(const pb::TensorProto& proto) {
  return static_cast<int>(
      std::ranges::count_if(sizes_of(proto), [](int size) { return size > 0; }));
}

void check_fields(const pb::TensorProto& proto, DType dtype, const Shape& shape,
                  std::string_view who) {
  const auto wanted_field = static_cast<std::size_t>(field_of(dtype));
  const std::uint64_t wanted = entries_needed(dtype, shape.size());
  const std::array<int, 6> sizes = sizes_of(proto);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(sizes[i]);
    if (size == (i == wanted_field ? wanted : 0)) continue;
    fail(ErrorKind::model, who, ": ", dtype, shape, " needs ", wanted, " entries in ",
         kFieldNames[wanted_field], " and none elsewhere; ", kFieldNames[i], " has ", size);
  }
}

void take_fields(pb::TensorProto& proto, DType dtype, std::string_view who,
                 std::span<unsigned char> bytes) {
  visit_field(field_of(dtype), proto, [&]<class Entry>(RepeatedNumbers<Entry>& entries) {
    const std::size_t width = entry_bytes(dtype);
    if (width == sizeof(Entry)) {
      if (!bytes.empty()) std::memcpy(bytes.data(), entries.data(), bytes.size());
    } else if constexpr (std::is_integral_v<Entry>) {
      if constexpr (std::is_same_v<Entry, std::int32_t>) {
        if (is_six_bit(dtype)) return pack_six_bits(entries, who, bytes);
      }
      narrow(entries, width, who, bytes.data());
    }
  });
  proto.clear_float_data();
  proto.clear_int32_data();
  proto.clear_int64_data();
  proto.clear_double_data();
  proto.clear_uint64_data();
}

void put_fields(DType dtype, std::span<const unsigned char> bytes, std::int64_t count,
                pb::TensorProto& proto) {
  visit_field(field_of(dtype), proto, [&]<class Entry>(RepeatedNumbers<Entry>& entries) {
    const std::size_t width = entry_bytes(dtype);
    if (width == sizeof(Entry)) {
      entries.Resize(static_cast<int>(bytes.size() / width), Entry{});
      if (!bytes.empty()) std::memcpy(entries.mutable_data(), bytes.data(), bytes.size());
    } else if constexpr (std::is_integral_v<Entry>) {
      if constexpr (std::is_same_v<Entry, std::int32_t>) {
        if (is_six_bit(dtype)) return unpack_six_bits(bytes, count, entries);
      }
      widen(dtype, bytes, width, entries);
    }
  });
}

}  // namespace graft::onnx
