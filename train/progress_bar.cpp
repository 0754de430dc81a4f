#include "train/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <locale>
#include <sstream>

namespace graft {

ProgressBar::ProgressBar() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  clear();
}

void ProgressBar::show(const Progress& progress) {
  if (!is_terminal_) return;
  const Clock::time_point now = Clock::now();
  const double accuracy = progress.step.accuracy.value_or(0.0);
  if (progress.batch == 1) {
    epoch_start_ = now;
    loss_ = progress.step.loss;
    accuracy_ = accuracy;
  }
  // Single batches jump; a moving average shows where they go.
  constexpr double kNew = 0.05;
  loss_ += kNew * (progress.step.loss - loss_);
  accuracy_ += kNew * (accuracy - accuracy_);
  if (progress.batch != progress.batches && now - last_drawn_ < std::chrono::milliseconds(100)) {
    return;
  }
  last_drawn_ = now;
  Progress smooth = progress;
  smooth.step.loss = loss_;
  if (smooth.step.accuracy) smooth.step.accuracy = accuracy_;
  const double elapsed = std::chrono::duration<double>(now - epoch_start_).count();
  // \r goes to the start of the line, ESC[K erases what is left of a longer one.
  std::fprintf(stderr, "\r%s\x1b[K", progress_line(smooth, elapsed).c_str());
  std::fflush(stderr);
  is_drawn_ = true;
}

void ProgressBar::clear() {
  if (!is_drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  is_drawn_ = false;
}

std::string progress_line(const Progress& progress, double elapsed) {
  constexpr int kWidth = 20;
  const double share = progress.batches > 0 ? static_cast<double>(progress.batch) /
                                                  static_cast<double>(progress.batches)
                                            : 1.0;
  const auto filled = static_cast<std::size_t>(share * kWidth);
  std::ostringstream line;
  line.imbue(std::locale::classic());
  line << std::fixed << "epoch " << progress.epoch << '/' << progress.epochs << " ["
       << std::string(filled, '#') << std::string(kWidth - filled, '-') << "] " << std::setw(3)
       << static_cast<int>(share * 100.0) << " %  loss " << std::setprecision(4)
       << progress.step.loss;
  if (progress.step.accuracy) {
    line << "  accuracy " << std::setprecision(1) << *progress.step.accuracy * 100.0 << " %";
  }
  if (share > 0.0 && share < 1.0) {
    line << "  " << std::setprecision(0) << elapsed * (1.0 - share) / share << " s left";
  }
  return line.str();
}

}  // namespace graft
