#include <algorithm>
#include <cstring>
#include <optional>

#include "io/wire/format_internal.h"

namespace graft::onnx::wire {

/// Goes through bytes once.
class Message::Reader {
 public:
  Reader(std::string_view bytes, int depth) : bytes_(bytes), depth_(depth) {}

  bool read(Message& into) {
    while (!bytes_.empty()) {
      const std::string_view start = bytes_;
      const std::optional<std::uint64_t> tag = take_varint();
      if (!tag || (*tag >> 3U) == 0 || (*tag >> 3U) > 0x1fffffffU) return false;
      const std::optional<bool> taken = read_field(into, *tag);
      if (!taken) return false;
      if (!*taken) into.unknown_.append(start.substr(0, start.size() - bytes_.size()));
    }
    return true;
  }

 private:
  /// Nothing if the bytes are damaged; false if the field stays unknown.
  std::optional<bool> read_field(Message& into, std::uint64_t tag) {
    const std::span<const Field> fields = into.fields();
    const auto form = static_cast<unsigned>(tag & 7U);
    const auto at =
        std::ranges::find(fields, static_cast<std::uint32_t>(tag >> 3U), &Field::number);
    if (form == length) {
      const std::optional<std::string_view> piece = take_piece();
      if (!piece) return std::nullopt;
      if (at == fields.end()) return false;
      const auto index = static_cast<std::size_t>(at - fields.begin());
      if (form_of(at->kind) == length) return read_piece(into, index, *piece);
      return at->repeated ? read_packed(into, index, *piece) : false;
    }
    const std::optional<std::uint64_t> bits = take_number(form);
    if (!bits) return std::nullopt;
    if (at == fields.end() || form_of(at->kind) != form) return false;
    if (at->largest != 0 && *bits > at->largest) return false;
    put_number(into, static_cast<std::size_t>(at - fields.begin()), *bits);
    return true;
  }

  std::optional<bool> read_piece(Message& into, std::size_t index, std::string_view piece) const {
    const Field& field = into.fields()[index];
    void* const content = into.content(index);
    if (field.kind == Kind::message) {
      if (!field.repeated) into.set(index);
      Message& inner = field.repeated ? static_cast<MessageList*>(content)->add()
                                      : static_cast<MessageSlot*>(content)->get();
      return depth_ > 0 && inner.parse(piece, depth_ - 1) ? std::optional(true) : std::nullopt;
    }
    if (field.repeated) {
      *static_cast<Strings*>(content)->Add() = piece;
    } else {
      into.set(index);
      *static_cast<std::string*>(content) = piece;
    }
    return true;
  }

  static std::optional<bool> read_packed(Message& into, std::size_t index, std::string_view piece) {
    Reader inner(piece, 0);
    const Form form = form_of(into.fields()[index].kind);
    while (!inner.bytes_.empty()) {
      const std::optional<std::uint64_t> bits = inner.take_number(form);
      if (!bits) return std::nullopt;
      put_number(into, index, *bits);
    }
    return true;
  }

  static void put_number(Message& into, std::size_t index, std::uint64_t bits) {
    const Field& field = into.fields()[index];
    void* const content = into.content(index);
    with_number(field.kind, [&]<class T>(T) {
      if (field.repeated) {
        static_cast<Numbers<T>*>(content)->Add(from_bits<T>(bits));
      } else {
        into.set(index);
        *static_cast<T*>(content) = from_bits<T>(bits);
      }
    });
  }

  std::optional<std::uint64_t> take_number(unsigned form) {
    if (form == varint) return take_varint();
    const std::size_t count = form == four_bytes ? 4 : form == eight_bytes ? 8 : bytes_.size() + 1;
    if (count > bytes_.size()) return std::nullopt;
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes_.data(), count);
    bytes_.remove_prefix(count);
    return bits;
  }

  std::optional<std::uint64_t> take_varint() {
    std::uint64_t value = 0;
    const std::size_t most = std::min(bytes_.size(), kLargestVarint);
    for (std::size_t i = 0; i < most; ++i) {
      const auto byte = static_cast<unsigned char>(bytes_[i]);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << (7 * i);
      if (byte < 0x80) {
        bytes_.remove_prefix(i + 1);
        return value;
      }
    }
    return std::nullopt;
  }

  std::optional<std::string_view> take_piece() {
    const std::optional<std::uint64_t> count = take_varint();
    if (!count || *count > bytes_.size()) return std::nullopt;
    const std::string_view piece = bytes_.substr(0, *count);
    bytes_.remove_prefix(piece.size());
    return piece;
  }

  std::string_view bytes_;
  int depth_;
};

bool Message::parse(std::string_view bytes, int depth) {
  return Reader(bytes, depth).read(*this);
}

bool Message::ParseFromString(std::string_view bytes) {
  constexpr int kDepth = 1000;  // only what `parse` let in comes here
  Clear();
  return parse(bytes, kDepth);
}

}  // namespace graft::onnx::wire
