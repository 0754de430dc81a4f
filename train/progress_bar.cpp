#include "train/progress_bar.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <locale>
#include <sstream>
#include <vector>

#include "core/base/memory_use.h"
#include "train/seconds.h"
#include "train/status_line.h"

namespace graft {
namespace {

double share_of(std::int64_t done, std::int64_t all) {
  return all > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(all), 0.0, 1.0) : 1.0;
}

std::string fixed(double number, int digits) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << std::fixed << std::setprecision(digits) << number;
  return out.str();
}

/// "0.05", "1e-05".
std::string shortest(double number) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << std::setprecision(3) << number;
  return out.str();
}

/// "0:12", "3:04", "2:05:00".
std::string duration_text(double seconds) {
  constexpr std::int64_t kUnit = 60;
  const auto all = static_cast<std::int64_t>(std::min(std::round(seconds), 1e12));
  const auto two = [](std::int64_t n) { return (n < 10 ? ":0" : ":") + std::to_string(n); };
  const std::int64_t minutes = all / kUnit;
  if (minutes < kUnit) return std::to_string(minutes) + two(all % kUnit);
  return std::to_string(minutes / kUnit) + two(minutes % kUnit) + two(all % kUnit);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double mib = static_cast<double>(bytes) / kMiB;
  return mib < 1024.0 ? fixed(mib, 0) + " MiB" : fixed(mib / 1024.0, 1) + " GiB";
}

std::string rate_text(double samples_per_second) {
  return fixed(samples_per_second, samples_per_second < 10.0 ? 1 : 0) + " samples/s";
}

/// Parts of a line in the order in which they are shown; of those that do not fit, the one of the
/// highest rank goes first.
class Parts {
 public:
  void add(int rank, std::string part) { parts_.push_back({rank, std::move(part)}); }

  std::string fit(std::size_t columns) {
    while (parts_.size() > 1 && joined().size() > columns) {
      parts_.erase(std::ranges::max_element(parts_, {}, &Part::rank));
    }
    return joined().substr(0, columns);
  }

 private:
  struct Part {
    int rank;
    std::string text;
  };

  std::string joined() const {
    std::string line;
    for (const Part& part : parts_) line += (line.empty() ? "" : "  ") + part.text;
    return line;
  }

  std::vector<Part> parts_;
};

/// "[#####---------------]".
std::string bar_text(double share, std::size_t columns) {
  constexpr std::size_t kNarrow = 79;
  constexpr std::size_t kWide = 139;
  const std::size_t width = columns < kNarrow ? 8 : (columns < kWide ? 20 : 40);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  return "[" + std::string(filled, '#') + std::string(width - filled, '-') + "]";
}

std::string percent_text(double share) {
  std::ostringstream out;
  out << std::setw(2) << static_cast<int>(share * 100.0) << " %";
  return out.str();
}

}  // namespace

Pace ProgressBar::pace_of(const Progress& progress) const {
  Pace pace;
  pace.memory_bytes = resident_bytes();
  const double seconds = seconds_since(epoch_start_);
  if (epoch_samples_ > 0 && seconds > 0.0) {
    pace.samples_per_second = static_cast<double>(epoch_samples_) / seconds;
  }
  const std::int64_t left = progress.batches - progress.batch;
  if (progress.batch > 1 && left > 0) {
    const auto done = static_cast<double>(progress.batch - 1);
    pace.seconds_left = seconds / done * static_cast<double>(left);
  }
  const std::int64_t steps = (progress.epoch - 1) * progress.batches + progress.batch;
  const std::int64_t run_left = progress.epochs * progress.batches - steps;
  if (progress.epochs > 1 && run_start_ && steps > steps_before_ && run_left > 0) {
    const auto done = static_cast<double>(steps - steps_before_);
    pace.run_seconds_left = seconds_since(*run_start_) / done * static_cast<double>(run_left);
  }
  return pace;
}

ProgressBar::ProgressBar(bool wanted) : line_(std::make_unique<StatusLine>(wanted)) {}
ProgressBar::~ProgressBar() = default;

void ProgressBar::clear() {
  line_->clear();
}

void ProgressBar::show(const Progress& progress) {
  const double accuracy = progress.step.accuracy.value_or(0.0);
  if (progress.batch == 1 || !run_start_) {
    epoch_start_ = Clock::now();
    epoch_samples_ = 0;
    loss_ = progress.step.loss;
    accuracy_ = accuracy;
  } else {
    epoch_samples_ += progress.step.samples;
  }
  if (!run_start_) {
    run_start_ = Clock::now();
    steps_before_ = (progress.epoch - 1) * progress.batches + progress.batch;
  }
  // Single batches jump; a moving average shows where they go.
  constexpr double kNew = 0.05;
  loss_ += kNew * (progress.step.loss - loss_);
  accuracy_ += kNew * (accuracy - accuracy_);
  if (!line_->is_due()) return;
  Progress smooth = progress;
  smooth.step.loss = loss_;
  if (smooth.step.accuracy) smooth.step.accuracy = accuracy_;
  line_->draw(progress_line(smooth, pace_of(progress), StatusLine::columns()));
}

void ProgressBar::show(const StageProgress& progress) {
  if (progress.done == 0) stage_start_ = Clock::now();
  if (!line_->is_due()) return;
  Pace pace;
  const double seconds = seconds_since(stage_start_);
  if (seconds > 0.0) pace.samples_per_second = static_cast<double>(progress.samples) / seconds;
  if (progress.done > 0 && progress.done < progress.all) {
    const std::int64_t left = progress.all - progress.done;
    pace.seconds_left = seconds / static_cast<double>(progress.done) * static_cast<double>(left);
  }
  line_->draw(progress_line(progress, pace, StatusLine::columns()));
}

std::function<bool()> ProgressBar::counting(std::string name, const DataLoader& loader,
                                            std::function<bool()> goes_on) {
  StageProgress progress{.name = std::move(name), .all = loader.batches()};
  const std::int64_t all_samples = loader.dataset().size();
  return [this, progress, all_samples, goes_on = std::move(goes_on)]() mutable {
    progress.samples = all_samples * progress.done / progress.all;
    show(progress);
    ++progress.done;
    return !goes_on || goes_on();
  };
}

std::string progress_line(const Progress& progress, const Pace& pace, std::size_t columns) {
  const double share = share_of(progress.batch, progress.batches);
  Parts parts;
  parts.add(0, text("epoch ", progress.epoch, '/', progress.epochs));
  parts.add(4, bar_text(share, columns));
  parts.add(1, percent_text(share));
  constexpr double kLong = 1e5;
  const double loss = progress.step.loss;
  parts.add(2, "loss " + (std::abs(loss) < kLong ? fixed(loss, 4) : shortest(loss)));
  if (progress.step.accuracy) {
    parts.add(5, "accuracy " + fixed(*progress.step.accuracy * 100.0, 1) + " %");
  }
  if (pace.samples_per_second > 0.0) parts.add(7, rate_text(pace.samples_per_second));
  if (progress.learning_rate) parts.add(8, "lr " + shortest(*progress.learning_rate));
  if (pace.memory_bytes > 0) parts.add(9, bytes_text(pace.memory_bytes));
  if (pace.seconds_left) parts.add(6, duration_text(*pace.seconds_left) + " left");
  if (pace.run_seconds_left) parts.add(3, "run " + duration_text(*pace.run_seconds_left) + " left");
  return parts.fit(columns);
}

std::string progress_line(const StageProgress& progress, const Pace& pace, std::size_t columns) {
  const double share = share_of(progress.done, progress.all);
  Parts parts;
  parts.add(0, progress.name);
  parts.add(3, bar_text(share, columns));
  parts.add(1, percent_text(share));
  if (pace.samples_per_second > 0.0) parts.add(4, rate_text(pace.samples_per_second));
  if (pace.seconds_left) parts.add(2, duration_text(*pace.seconds_left) + " left");
  return parts.fit(columns);
}

}  // namespace graft
