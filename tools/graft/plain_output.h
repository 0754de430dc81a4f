#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace graft::cli {

/// The text with what a terminal may obey, escape sequences and other control characters, written
/// as \\x1b: names in files are not to be trusted. Line ends and tabs stay.
std::string plain(std::string_view text);

/// While it lives, all that is written to `out` passes through `plain`.
class PlainOutput : private std::streambuf {
 public:
  explicit PlainOutput(std::ostream& out);
  ~PlainOutput() override;
  PlainOutput(const PlainOutput&) = delete;
  PlainOutput& operator=(const PlainOutput&) = delete;

 private:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

  std::ostream& out_;
  std::streambuf* target_;
};

}  // namespace graft::cli
