#include "io/wire/message.h"

#include <cstring>

#include "io/wire/format_internal.h"

namespace graft::onnx::wire {
namespace {

/// Calls use(bits) for each number of a field that repeats them.
template <class Use>
void for_each_number(Kind kind, const void* content, Use&& use) {
  with_number(kind, [&]<class T>(T) {
    for (const T value : *static_cast<const Numbers<T>*>(content)) use(bits_of(value));
  });
}

std::uint64_t number_at(Kind kind, const void* content) {
  return with_number(kind, [&]<class T>(T) { return bits_of(*static_cast<const T*>(content)); });
}

}  // namespace

/// Says what a message consists of, piece by piece, to one who counts or writes: `out.put` takes
/// bytes or a message within.
template <class Out>
class Message::Writer {
 public:
  explicit Writer(Out& out) : out_(out) {}

  void put(const Message& message) {
    const std::span<const Field> fields = message.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Field& field = fields[i];
      const void* const content = message.content(i);
      if (field.kind == Kind::message) {
        put_messages(field, content);
      } else if (field.kind == Kind::string) {
        if (field.repeated) {
          for (const std::string& one : *static_cast<const Strings*>(content)) put(field, one);
        } else if (message.has(i)) {
          put(field, *static_cast<const std::string*>(content));
        }
      } else if (field.repeated) {
        put_numbers(field, content);
      } else if (message.has(i)) {
        put_varint(tag_of(field));
        put_number(field.kind, number_at(field.kind, content));
      }
    }
    out_.put(message.unknown_);
  }

 private:
  void put(const Field& field, std::string_view text) {
    put_varint(tag_of(field));
    put_varint(text.size());
    out_.put(text);
  }

  void put(const Field& field, const Message& inner) {
    put_varint(tag_of(field));
    put_varint(inner.cached_bytes_);
    out_.put(inner);
  }

  void put_messages(const Field& field, const void* content) {
    if (!field.repeated) {
      const Message* const inner = static_cast<const MessageSlot*>(content)->find();
      if (inner != nullptr) put(field, *inner);
      return;
    }
    const auto& list = *static_cast<const MessageList*>(content);
    for (int i = 0; i < list.size(); ++i) put(field, list.at(i));
  }

  void put_numbers(const Field& field, const void* content) {
    std::size_t bytes = 0;
    for_each_number(field.kind, content,
                    [&](std::uint64_t bits) { bytes += number_bytes(field.kind, bits); });
    if (bytes == 0) return;
    if (field.packed) {
      put_varint(tag_of(field));
      put_varint(bytes);
    }
    for_each_number(field.kind, content, [&](std::uint64_t bits) {
      if (!field.packed) put_varint(tag_of(field));
      put_number(field.kind, bits);
    });
  }

  void put_varint(std::uint64_t value) {
    char bytes[kLargestVarint];
    std::size_t count = 0;
    for (; value > 0x7f; value >>= 7U) bytes[count++] = static_cast<char>((value & 0x7fU) | 0x80U);
    bytes[count++] = static_cast<char>(value);
    out_.put(std::string_view(bytes, count));
  }

  void put_number(Kind kind, std::uint64_t bits) {
    if (form_of(kind) == varint) return put_varint(bits);
    char bytes[sizeof(bits)];
    std::memcpy(bytes, &bits, sizeof(bits));
    out_.put(std::string_view(bytes, number_bytes(kind, bits)));
  }

  Out& out_;
};

std::size_t Message::ByteSizeLong() const {
  struct Counter {
    std::size_t bytes = 0;
    void put(std::string_view piece) { bytes += piece.size(); }
    void put(const Message& inner) { bytes += inner.cached_bytes_; }
  } counter;
  for_each_inner([](const Message& inner) { inner.ByteSizeLong(); });
  Writer<Counter>(counter).put(*this);
  cached_bytes_ = counter.bytes;
  return counter.bytes;
}

void Message::write(const Sink& sink) const {
  struct Out {
    const Sink& sink;
    void put(std::string_view piece) const { sink(piece); }
    void put(const Message& inner) const { inner.write(sink); }
  } out{sink};
  Writer<Out>(out).put(*this);
}

void Message::for_each_inner(const std::function<void(const Message&)>& visit) const {
  const std::span<const Field> all = fields();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind != Kind::message) continue;
    if (!all[i].repeated) {
      const Message* const inner = static_cast<const MessageSlot*>(content(i))->find();
      if (inner != nullptr) visit(*inner);
      continue;
    }
    const auto& list = *static_cast<const MessageList*>(content(i));
    for (int k = 0; k < list.size(); ++k) visit(list.at(k));
  }
}

std::string Message::SerializeAsString() const {
  std::string bytes;
  bytes.reserve(ByteSizeLong());
  write([&](std::string_view piece) { bytes.append(piece); });
  return bytes;
}

void Message::Clear() {
  for (std::size_t i = 0; i < fields().size(); ++i) clear(i);
  unknown_.clear();
}

bool Message::has(std::size_t index) const {
  if (fields()[index].kind == Kind::message) {
    return static_cast<const MessageSlot*>(content(index))->find() != nullptr;
  }
  return (has_ >> index & 1U) != 0;
}

void Message::clear(std::size_t index) {
  const Field& field = fields()[index];
  void* const at = content(index);
  has_ &= ~(std::uint32_t{1} << index);
  if (field.kind == Kind::message) {
    field.repeated ? static_cast<MessageList*>(at)->Clear()
                   : static_cast<MessageSlot*>(at)->clear();
  } else if (field.kind == Kind::string) {
    field.repeated ? static_cast<Strings*>(at)->Clear() : static_cast<std::string*>(at)->clear();
  } else {
    with_number(field.kind, [&]<class T>(T zero) {
      field.repeated ? static_cast<Numbers<T>*>(at)->Clear() : void(*static_cast<T*>(at) = zero);
    });
  }
}

void Message::set(std::size_t index) {
  if (fields()[index].one_of && !has(index)) clear_one_of();
  has_ |= std::uint32_t{1} << index;
}

void Message::clear_one_of() {
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].one_of) clear(i);
  }
}

int Message::which() const {
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].one_of && has(i)) return static_cast<int>(fields()[i].number);
  }
  return 0;
}

}  // namespace graft::onnx::wire
