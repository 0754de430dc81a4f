#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace graft {

/// One line of the terminal behind stderr that is drawn again and again and erased before other
/// text comes. Nothing is written where stderr is no terminal, or one that moves no cursor
/// (TERM=dumb).
class StatusLine {
 public:
  /// `wanted`: false for a line that never shows.
  explicit StatusLine(bool wanted = true);
  /// Erases the line.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Whether it is time to draw: there is a terminal, and the last drawing is a tenth of a second
  /// old.
  bool is_due() const;
  /// The columns that a line may take now: windows change their size.
  static std::size_t columns();
  /// Draws the line anew. What does not fit is cut off; the run of '#' is coloured unless the
  /// environment says NO_COLOR.
  void draw(std::string_view line);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_on_;
  bool has_colour_;
  bool is_drawn_ = false;
  Clock::time_point last_drawn_{};
};

}  // namespace graft
