#include "core/base/error.h"

#include <array>
#include <charconv>

namespace graft {
namespace {

/// Names in files may hold zero bytes, where `what` would end.
std::string with_zeros_shown(const std::string& message) {
  std::string shown;
  for (const char c : message) c == '\0' ? shown += "\\x00" : shown += c;
  return shown;
}

/// `format`: what std::to_chars takes behind the number.
template <class Number, class... Format>
void append(std::string& to, Number number, Format... format) {
  std::array<char, 32> digits{};
  const std::to_chars_result end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number, format...);
  to.append(digits.data(), end.ptr);
}

}  // namespace

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::io:
      return "io";
    case ErrorKind::model:
      return "model";
    case ErrorKind::shape:
      return "shape";
    case ErrorKind::type:
      return "type";
    case ErrorKind::device:
      return "device";
    case ErrorKind::memory:
      return "memory";
    case ErrorKind::argument:
      return "argument";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::numeric:
      return "numeric";
  }
  return "unknown";
}

void append_number(std::string& to, std::int64_t number) {
  append(to, number);
}

void append_number(std::string& to, std::uint64_t number) {
  append(to, number);
}

void append_number(std::string& to, double number) {
  constexpr int kDigits = 6;
  append(to, number, std::chars_format::general, kDigits);
}

void throw_error(ErrorKind kind, const std::string& message) {
  throw Error(kind, with_zeros_shown(message));
}

}  // namespace graft
