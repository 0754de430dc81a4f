#include "data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "data/gzip.h"
#include "data/tensor_dataset.h"

namespace graft {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_digits(std::string_view field) {
  return !field.empty() && std::ranges::all_of(field, [](char c) { return c >= '0' && c <= '9'; });
}

/// A number in full, NaN and infinity included; those too large for the widest type count as
/// infinite.
std::optional<double> parse_number(std::string_view field) {
  if (field.starts_with("+-")) return {};
  if (field.starts_with('+')) field.remove_prefix(1);
  long double value = 0.0L;  // so that what is too small for f64 is told from what is too large
  const auto [end, status] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (status == std::errc::invalid_argument || end != field.data() + field.size()) return {};
  if (status == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  return static_cast<double>(value);
}

class CsvParser {
 public:
  CsvParser(const std::filesystem::path& path, CsvTarget target)
      : path_(path.string()), target_(target), content_(read_text(path)) {}

  std::shared_ptr<Dataset> parse() {
    std::string_view rest = content_;
    if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);  // UTF-8 byte order mark
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      ++line_;
      add_line(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (labels_.empty()) fail(ErrorKind::io, path_, ": holds no sample");
    return dataset();
  }

 private:
  template <class... Args>
  [[noreturn]] void fail_at(std::size_t column, const Args&... args) const {
    fail(ErrorKind::io, path_, ": line ", line_, ", column ", column + 1, ": ", args...);
  }

  void split(std::string_view line) {
    fields_.clear();
    while (true) {
      line = trimmed(line);
      std::size_t comma = 0;
      if (line.starts_with('"')) {
        std::size_t close = line.find('"', 1);
        while (close != std::string_view::npos && line.substr(close).starts_with("\"\"")) {
          close = line.find('"', close + 2);  // a doubled quote stands for one
        }
        if (close == std::string_view::npos) fail_at(fields_.size(), "the quote is not closed");
        comma = line.find(',', close);
      } else {
        comma = line.find(',');
      }
      std::string_view field = trimmed(line.substr(0, comma));
      if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
        field = trimmed(field.substr(1, field.size() - 2));
      }
      fields_.push_back(field);
      if (comma == std::string_view::npos) return;
      line.remove_prefix(comma + 1);
    }
  }

  void add_line(std::string_view line) {
    if (trimmed(line).empty()) return;
    split(line);
    if (columns_ == 0) {
      columns_ = fields_.size();
      if (columns_ < 2) fail_at(0, "1 column, wanted features and a target, separated by commas");
      const bool is_header = std::ranges::any_of(
          fields_, [](std::string_view field) { return !field.empty() && !parse_number(field); });
      if (is_header) return;
    }
    if (fields_.size() != columns_) {
      fail_at(std::min(fields_.size(), columns_), fields_.size(), " columns, wanted ", columns_,
              " as in the lines above");
    }
    for (std::size_t i = 0; i + 1 < columns_; ++i) features_.push_back(number(i));
    add_label();
  }

  float number(std::size_t column) const {
    const std::string_view field = fields_[column];
    if (field.empty()) fail_at(column, "the field is empty, wanted a number");
    const std::optional<double> value = parse_number(field);
    if (!value) fail_at(column, "'", field, "' is not a number");
    if (!(std::abs(*value) <= std::numeric_limits<float>::max())) {
      fail_at(column, "'", field, "' is not a finite f32");
    }
    return static_cast<float>(*value);
  }

  void add_label() {
    const std::size_t column = columns_ - 1;
    labels_.push_back(number(column));
    if (target_ == CsvTarget::number) return;
    std::int64_t index = 0;
    const std::string_view field = fields_[column];
    const bool fits =
        is_digits(field) &&
        std::from_chars(field.data(), field.data() + field.size(), index).ec == std::errc();
    if (fits) {
      indices_.push_back(index);
    } else if (target_ == CsvTarget::class_index) {
      fail_at(column, "label '", field, "' is not a class index; number the classes from 0");
    } else {
      target_ = CsvTarget::number;
    }
  }

  std::shared_ptr<Dataset> dataset() const {
    const auto count = static_cast<std::int64_t>(labels_.size());
    const Shape shape{count, static_cast<std::int64_t>(columns_ - 1)};
    const NamedSamples target = target_ == CsvTarget::number
                                    ? NamedSamples{"target", Tensor::from(Shape{count, 1}, labels_)}
                                    : NamedSamples{"label", Tensor::from(Shape{count}, indices_)};
    return tensor_dataset({{"features", Tensor::from(shape, features_)}}, target);
  }

  std::string path_;
  CsvTarget target_;  // turns from automatic to number at the first label that is no index
  std::string content_;
  std::size_t line_ = 0;
  std::size_t columns_ = 0;
  std::vector<std::string_view> fields_;  // of the current line
  std::vector<float> features_;
  std::vector<float> labels_;
  std::vector<std::int64_t> indices_;
};

}  // namespace

std::shared_ptr<Dataset> csv(const std::filesystem::path& path, CsvTarget target) {
  return CsvParser(path, target).parse();
}

}  // namespace graft
