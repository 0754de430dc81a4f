// How a line never wraps nor leaves anything behind: it is shorter than the terminal is wide, and
// the cursor rests at its start. When the window becomes narrower than the line, terminals that
// wrap it anew keep the cursor at its first row, so that erasing from there to the end of the
// screen takes all rows of it. Some tell of a new width a moment after they have it: the line is
// drawn while they do not wrap, so that what does not fit then is cut off by them.
#include "train/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace graft {
namespace {

constexpr const char* kErase = "\r\x1b[J";
constexpr const char* kNoWrap = "\x1b[?7l";
constexpr const char* kWrap = "\x1b[?7h";

/// Empty where it is not set.
std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool can_draw() {
  return isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb";
}

/// The first run of '#' in green.
std::string coloured(std::string_view line) {
  const std::size_t first = line.find('#');
  if (first == std::string_view::npos) return std::string(line);
  const std::size_t last = std::min(line.find_first_not_of('#', first), line.size());
  std::string result(line.substr(0, first));
  result += "\x1b[32m";
  result += line.substr(first, last - first);
  result += "\x1b[0m";
  result += line.substr(last);
  return result;
}

}  // namespace

StatusLine::StatusLine(bool wanted)
    : is_on_(wanted && can_draw()), has_colour_(environment("NO_COLOR").empty()) {}

StatusLine::~StatusLine() {
  clear();
}

bool StatusLine::is_due() const {
  return is_on_ && Clock::now() - last_drawn_ >= std::chrono::milliseconds(100);
}

std::size_t StatusLine::columns() {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  // In the last column some terminals would go on to the next line.
  return (is_known ? size.ws_col : kUsual) - 1;
}

void StatusLine::draw(std::string_view line) {
  if (!is_on_) return;
  line = line.substr(0, columns());
  const std::string shown = has_colour_ ? coloured(line) : std::string(line);
  std::fprintf(stderr, "%s%s%s%s\r", kErase, kNoWrap, shown.c_str(), kWrap);
  std::fflush(stderr);
  is_drawn_ = true;
  last_drawn_ = Clock::now();
}

void StatusLine::clear() {
  if (!is_drawn_) return;
  std::fputs(kErase, stderr);
  std::fflush(stderr);
  is_drawn_ = false;
}

}  // namespace graft
