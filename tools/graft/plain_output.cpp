#include "tools/graft/plain_output.h"

namespace graft::cli {
namespace {

constexpr unsigned char kDelete = 0x7f;

bool is_control(unsigned char c) {
  return (c < ' ' && c != '\n' && c != '\t') || c == kDelete;
}

/// In UTF-8 the controls from U+0080 to U+009F are C2 80 to C2 9F; U+009B begins a sequence as ESC
/// and [ do.
bool is_late_control(unsigned char lead, unsigned char next) {
  return lead == 0xc2 && next >= 0x80 && next <= 0x9f;
}

void append_escaped(std::string& to, unsigned char c) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  to += "\\x";
  to += kDigits[c >> 4U];
  to += kDigits[c & 0xfU];
}

}  // namespace

std::string plain(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (is_late_control(c, next)) {
      append_escaped(result, c);
      append_escaped(result, next);
      ++i;
    } else if (is_control(c)) {
      append_escaped(result, c);
    } else {
      result += text[i];
    }
  }
  return result;
}

PlainOutput::PlainOutput(std::ostream& out) : out_(out), target_(out.rdbuf(this)) {}

PlainOutput::~PlainOutput() {
  out_.flush();
  out_.rdbuf(target_);
}

PlainOutput::int_type PlainOutput::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize PlainOutput::xsputn(const char* text, std::streamsize count) {
  const std::string safe = plain({text, static_cast<std::size_t>(count)});
  const auto size = static_cast<std::streamsize>(safe.size());
  return target_->sputn(safe.data(), size) == size ? count : 0;
}

int PlainOutput::sync() {
  return target_->pubsync();
}

}  // namespace graft::cli
