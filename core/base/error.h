#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace graft {

/// What went wrong, so that a caller can choose what to do without reading the text.
enum class ErrorKind {
  io,           ///< a file cannot be opened, read or written
  model,        ///< the model's structure or bytes are not valid ONNX
  shape,        ///< dimensions do not fit
  type,         ///< element types do not fit
  device,       ///< no such device, or the device failed
  memory,       ///< an allocation or a byte budget cannot be met
  argument,     ///< the caller's request makes no sense
  unsupported,  ///< valid, but Graft cannot do it
  numeric,      ///< a computation gave NaN or infinity where the caller forbade it
};

/// "io", "model", ...
std::string_view name(ErrorKind kind);

/// The only exception type that leaves Graft's public interface. The text is lower case and
/// names the found and the wanted value, the node, and the remedy.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

/// What messages are made of, without streams: these bring a program half a megabyte of locales,
/// and every source that says something would read their headers. A type of Graft joins by an
/// append_text of its own.
inline void append_text(std::string& to, std::string_view part) {
  to += part;
}
template <std::same_as<char> T>
void append_text(std::string& to, T character) {
  to += character;
}

/// Decimal, whatever the program's locale.
void append_number(std::string& to, std::int64_t number);
void append_number(std::string& to, std::uint64_t number);
/// Six digits, as printf's %g: "0.05", "1e-05", "inf".
void append_number(std::string& to, double number);

/// Letters and truth values are integers to C++, not to a reader.
template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;
template <WholeNumber T>
void append_text(std::string& to, T number) {
  if constexpr (std::is_signed_v<T>) {
    append_number(to, std::int64_t{number});
  } else {
    append_number(to, std::uint64_t{number});
  }
}
template <std::floating_point T>
void append_text(std::string& to, T number) {
  append_number(to, static_cast<double>(number));
}

/// Joins all arguments. Throws std::bad_alloc.
template <class... Args>
std::string text(const Args&... args) {
  std::string joined;
  (append_text(joined, args), ...);
  return joined;
}

template <class T>
concept ClassOrEnum = std::is_class_v<T> || std::is_enum_v<T>;
/// A type of Graft that text() takes.
template <class T>
concept HasText = ClassOrEnum<T> && !std::convertible_to<const T&, std::string_view> &&
                  requires(std::string & to, const T& of) {
  append_text(to, of);
};
/// Streams take it too.
template <HasText T>
std::ostream& operator<<(std::ostream& out, const T& value) {
  return out << text(value);
}

[[noreturn]] void throw_error(ErrorKind kind, const std::string& message);

/// Throws Error{kind} with the joined arguments:
/// `fail(ErrorKind::shape, "softmax: axis ", axis, " out of range for ", shape)`.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, const Args&... args) {
  throw_error(kind, text(args...));
}

}  // namespace graft
