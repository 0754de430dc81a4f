#include "core/base/error.h"

#include <locale.h>

#include <array>
#include <charconv>
#include <cstdio>

namespace graft {
namespace {

/// Names in files may hold zero bytes, where `what` would end.
std::string with_zeros_shown(const std::string& message) {
  std::string shown;
  for (const char c : message) c == '\0' ? shown += "\\x00" : shown += c;
  return shown;
}

template <class Integer>
void append(std::string& to, Integer number) {
  std::array<char, 32> digits{};
  const std::to_chars_result end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number);
  to.append(digits.data(), end.ptr);
}

/// While it lives, this thread writes numbers as C does, whatever the program's locale.
class PlainNumbers {
 public:
  PlainNumbers() {
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    before_ = uselocale(plain);
  }
  ~PlainNumbers() { uselocale(before_); }
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;

 private:
  locale_t before_;
};

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
  // Not std::to_chars, which brings 0.1 MB of tables for the digits of doubles.
  std::array<char, 32> digits{};
  const PlainNumbers plain;
  std::snprintf(digits.data(), digits.size(), "%g", number);
  to += digits.data();
}

void throw_error(ErrorKind kind, const std::string& message) {
  throw Error(kind, with_zeros_shown(message));
}

}  // namespace graft
