#include "train/metric.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/edit_distance.h"
#include "core/base/error.h"
#include "core/base/limits.h"

namespace graft {
namespace {

using Values = std::vector<std::pair<std::string, double>>;

/// Calls visit(score, label) for each target, where score(c) is what the prediction gives class c.
template <class Visit>
void for_each_target(const Tensor& prediction, const Tensor& target, int class_axis,
                     const Visit& visit) {
  if (class_axis < 0) {
    fail(ErrorKind::argument, "this metric measures classes, the loss has none: targets are ",
         target);
  }
  const Shape& shape = prediction.shape();
  const std::int64_t classes = shape[class_axis];
  const std::int64_t inner = shape.size(class_axis + 1, shape.rank());
  const std::vector<std::int64_t> labels = to_int64(target);
  const std::vector<double> scores = to_double(prediction);
  if (static_cast<std::int64_t>(labels.size()) * classes != prediction.size()) {
    fail(ErrorKind::shape, "metric: predictions ", prediction, " for targets ", target);
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) continue;
    const auto at = static_cast<std::int64_t>(i);
    const std::size_t first = static_cast<std::size_t>(at / inner * classes * inner + at % inner);
    visit(
        [&](std::int64_t c) {
          return scores[first + static_cast<std::size_t>(c) * static_cast<std::size_t>(inner)];
        },
        labels[i]);
  }
}

class TopK : public Metric {
 public:
  explicit TopK(std::int64_t k) : k_(k) {}

  void reset() override { hits_ = all_ = 0; }

  /// Of equal scores the lower class comes first, as where the best one is asked for.
  void add(const Tensor& prediction, const Tensor& target, int class_axis) override {
    for_each_target(prediction, target, class_axis, [&](const auto& score, std::int64_t label) {
      const std::int64_t classes = prediction.shape()[class_axis];
      std::int64_t before = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        before += score(c) > score(label) || (score(c) == score(label) && c < label) ? 1 : 0;
      }
      hits_ += before < k_ && !std::isnan(score(label)) ? 1 : 0;
      ++all_;
    });
  }

  Values values() const override {
    if (all_ == 0) return {};
    return {{text("top", k_), static_cast<double>(hits_) / static_cast<double>(all_)}};
  }

 private:
  std::int64_t k_;
  std::int64_t hits_ = 0;
  std::int64_t all_ = 0;
};

/// One of a ConfusionMatrix's numbers.
class OfConfusion : public Metric {
 public:
  explicit OfConfusion(std::string name) : name_(std::move(name)) {}

  void reset() override { matrix_.reset(); }
  void add(const Tensor& prediction, const Tensor& target, int class_axis) override {
    matrix_.add(prediction, target, class_axis);
  }
  Values values() const override {
    Values values = matrix_.values();
    std::erase_if(values, [&](const auto& value) { return value.first != name_; });
    return values;
  }

 private:
  std::string name_;
  ConfusionMatrix matrix_;
};

/// Errors of numbers: "mae", "rmse", "r2".
class OfNumbers : public Metric {
 public:
  explicit OfNumbers(std::string name) : name_(std::move(name)) {}

  void reset() override { *this = OfNumbers(name_); }

  void add(const Tensor& prediction, const Tensor& target, int class_axis) override {
    if (class_axis >= 0 || prediction.size() != target.size()) {
      fail(ErrorKind::argument, name_, " measures numbers: one target ", target,
           " for each prediction ", prediction);
    }
    const std::vector<double> found = to_double(prediction);
    const std::vector<double> wanted = to_double(target);
    for (std::size_t i = 0; i < found.size(); ++i) {
      ++count_;
      absolute_ += std::abs(found[i] - wanted[i]);
      squared_ += (found[i] - wanted[i]) * (found[i] - wanted[i]);
      // Welford's sums: those of squares would cancel.
      const double off = wanted[i] - mean_;
      mean_ += off / static_cast<double>(count_);
      spread_ += off * (wanted[i] - mean_);
    }
  }

  Values values() const override {
    if (count_ == 0) return {};
    const auto count = static_cast<double>(count_);
    if (name_ == "mae") return {{name_, absolute_ / count}};
    if (name_ == "rmse") return {{name_, std::sqrt(squared_ / count)}};
    return {{name_, spread_ > 0.0 ? 1.0 - squared_ / spread_ : 0.0}};
  }

 private:
  std::string name_;
  std::int64_t count_ = 0;
  double absolute_ = 0.0;
  double squared_ = 0.0;
  double mean_ = 0.0;
  double spread_ = 0.0;
};

/// Edits between targets [B,L] and the best labels of predictions [T,B,C], for each label of the
/// targets.
class EditDistance : public Metric {
 public:
  explicit EditDistance(std::int64_t blank) : blank_(blank) {}

  void reset() override { edits_ = labels_ = 0; }

  void add(const Tensor& prediction, const Tensor& target, int /*class_axis*/) override {
    const Shape& shape = prediction.shape();
    if (shape.rank() != 3 || target.rank() != 2 || target.shape()[0] != shape[1]) {
      fail(ErrorKind::shape, "edit_distance: predictions ", prediction, " for targets ", target,
           ", wanted [T,B,C] for [B,L]");
    }
    const std::vector<double> scores = to_double(prediction);
    const std::vector<std::int64_t> labels = to_int64(target);
    for (std::int64_t b = 0; b < shape[1]; ++b) {
      std::vector<std::int64_t> wanted;
      for (std::int64_t l = 0; l < target.shape()[1]; ++l) {
        const std::int64_t label = labels[static_cast<std::size_t>(b * target.shape()[1] + l)];
        if (label < 0) break;
        wanted.push_back(label);
      }
      edits_ += static_cast<std::int64_t>(edit_distance(decoded(scores, shape, b), wanted));
      labels_ += static_cast<std::int64_t>(wanted.size());
    }
  }

  Values values() const override {
    if (labels_ == 0) return {};
    return {{"edit_distance", static_cast<double>(edits_) / static_cast<double>(labels_)}};
  }

 private:
  /// Greedy: the best class of each step, repeats and blanks left out.
  std::vector<std::int64_t> decoded(const std::vector<double>& scores, const Shape& shape,
                                    std::int64_t b) const {
    std::vector<std::int64_t> labels;
    std::int64_t last = blank_;
    for (std::int64_t t = 0; t < shape[0]; ++t) {
      const auto first = scores.begin() + (t * shape[1] + b) * shape[2];
      const std::int64_t best = std::max_element(first, first + shape[2]) - first;
      if (best != last && best != blank_) labels.push_back(best);
      last = best;
    }
    return labels;
  }

  std::int64_t blank_;
  std::int64_t edits_ = 0;
  std::int64_t labels_ = 0;
};

constexpr std::array<std::string_view, 4> kOfConfusion{"precision", "recall", "f1", "mean_iou"};
constexpr std::array<std::string_view, 3> kOfNumbers{"mae", "rmse", "r2"};

/// The k of "topk".
std::optional<std::int64_t> top_k_of(std::string_view name) {
  std::int64_t k = 0;
  if (!name.starts_with("top")) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + 3, end, k);
  if (error != std::errc() || stop != end || k < 1) return std::nullopt;
  return k;
}

double ratio(double part, double all) {
  return all > 0.0 ? part / all : 0.0;
}

}  // namespace

void ConfusionMatrix::reset() {
  classes_ = 0;
  counts_.clear();
}

/// A model says how many classes there are, and its weights need not grow with their square.
void ConfusionMatrix::start(std::int64_t classes) {
  const std::int64_t most = limits().table_entries;
  if (classes > most / classes) {
    fail(ErrorKind::unsupported, "metric: ", classes, " classes need a table of ", classes, " x ",
         classes, " entries; ", limit_text("tables", most));
  }
  counts_.resize(static_cast<std::size_t>(classes * classes));
  classes_ = classes;
}

void ConfusionMatrix::add(const Tensor& prediction, const Tensor& target, int class_axis) {
  for_each_target(prediction, target, class_axis, [&](const auto& score, std::int64_t label) {
    const std::int64_t classes = prediction.shape()[class_axis];
    if (counts_.empty()) start(classes);
    if (classes != classes_) {
      fail(ErrorKind::shape, "metric: predictions ", prediction, " of ", classes,
           " classes behind some of ", classes_, ", wanted as many");
    }
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < classes; ++c) best = score(c) > score(best) ? c : best;
    ++counts_[static_cast<std::size_t>(label * classes_ + best)];
  });
}

Values ConfusionMatrix::values() const {
  if (classes_ == 0) return {};
  std::array<double, 4> sums{};
  double occurring = 0.0;
  for (std::int64_t c = 0; c < classes_; ++c) {
    double row = 0.0;
    double column = 0.0;
    for (std::int64_t other = 0; other < classes_; ++other) {
      row += static_cast<double>(count(c, other));
      column += static_cast<double>(count(other, c));
    }
    if (row + column == 0.0) continue;
    const auto both = static_cast<double>(count(c, c));
    const std::array<double, 4> of_class{ratio(both, column), ratio(both, row),
                                         ratio(2.0 * both, row + column),
                                         ratio(both, row + column - both)};
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_class[i];
    occurring += 1.0;
  }
  Values values;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    values.emplace_back(kOfConfusion[i], ratio(sums[i], occurring));
  }
  return values;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names{"top5"};
  names.insert(names.end(), kOfConfusion.begin(), kOfConfusion.end());
  names.insert(names.end(), kOfNumbers.begin(), kOfNumbers.end());
  names.emplace_back("edit_distance");
  return names;
}

std::shared_ptr<Metric> metric_from_name(std::string_view name, std::int64_t blank) {
  if (const auto k = top_k_of(name)) return std::make_shared<TopK>(*k);
  if (std::ranges::find(kOfConfusion, name) != kOfConfusion.end()) {
    return std::make_shared<OfConfusion>(std::string(name));
  }
  if (std::ranges::find(kOfNumbers, name) != kOfNumbers.end()) {
    return std::make_shared<OfNumbers>(std::string(name));
  }
  if (name == "edit_distance") return std::make_shared<EditDistance>(blank);
  std::string valid;
  for (const std::string& known : metric_names()) valid += (valid.empty() ? "" : ", ") + known;
  fail(ErrorKind::argument, "unknown metric '", name, "'; valid: ", valid);
}

}  // namespace graft
