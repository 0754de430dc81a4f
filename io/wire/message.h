#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/wire/fields.h"

// Messages in Protocol Buffers' wire format without its library, for small programs (adr/0076). The
// classes of ONNX's messages are made by cmake/wire_messages.py and have the functions that protoc
// would give them, as far as io/proto calls them; so that has one source for both.
// Source: protobuf.dev, "Encoding".
namespace graft::onnx::wire {

enum class Kind : std::uint8_t { string, int64, int32, uint64, float32, float64, message };

/// What the format has to know of a field.
struct Field {
  std::uint32_t number;
  Kind kind;
  bool repeated = false;
  bool packed = false;
  bool one_of = false;
  /// Of an enum: larger values are none of its, and stay unknown. 0: any are taken.
  std::uint8_t largest = 0;
};

/// Takes pieces of a message's bytes in their order.
using Sink = std::function<void(std::string_view)>;

class Message {
 public:
  virtual ~Message() = default;
  virtual std::unique_ptr<Message> clone() const = 0;

  void Clear();
  /// Adds what the bytes hold to what is here, as the format has it. False if they are no such
  /// message or if messages nest deeper than `depth`.
  bool parse(std::string_view bytes, int depth);
  bool ParseFromString(std::string_view bytes);
  std::string SerializeAsString() const;
  std::size_t ByteSizeLong() const;
  /// Gives away the bytes. To be called after ByteSizeLong, while nothing has changed.
  void write(const Sink& sink) const;

 protected:
  Message() = default;
  Message(const Message&) = default;
  Message(Message&&) noexcept = default;
  Message& operator=(const Message&) = default;
  Message& operator=(Message&&) noexcept = default;

  /// In rising order of their numbers.
  virtual std::span<const Field> fields() const = 0;
  /// Where the field's content lies: a std::string, number, Strings, Numbers, MessageList or
  /// MessageSlot.
  virtual void* content(std::size_t index) = 0;
  const void* content(std::size_t index) const {
    return const_cast<Message*>(this)->content(index);
  }

  bool has(std::size_t index) const;
  void clear(std::size_t index);
  /// Notes that a field that is not repeated is there; others of the one_of are not, then.
  void set(std::size_t index);
  void clear_one_of();
  /// The number of the field that is there of the one_of; 0 without one.
  int which() const;

 private:
  class Reader;
  template <class Out>
  class Writer;

  void for_each_inner(const std::function<void(const Message&)>& visit) const;

  std::uint32_t has_ = 0;                 // by index: strings and numbers that are not repeated
  mutable std::size_t cached_bytes_ = 0;  // of the last ByteSizeLong
  std::string unknown_;                   // fields that have no place here, as they came
};

}  // namespace graft::onnx::wire
