#include "tools/graft/class_names.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.h"

namespace graft::cli {
namespace {

/// Reads what Python's repr() writes of texts and indices. Each function takes what it reads from
/// the text.
class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : text_(text) {}

  bool take(char c) {
    while (text_.starts_with(' ')) text_.remove_prefix(1);
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::optional<std::size_t> index() {
    std::size_t number = 0;
    while (text_.starts_with(' ')) text_.remove_prefix(1);
    const char* const end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data(), end, number);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
    return number;
  }

  /// In either quotes; a backslash makes the next character an ordinary one.
  std::optional<std::string> quoted() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"' && !take('"')) return std::nullopt;
    std::string result;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == quote) {
        text_.remove_prefix(i + 1);
        return result;
      }
      if (text_[i] == '\\' && i + 1 < text_.size()) ++i;
      result += text_[i];
    }
    return std::nullopt;
  }

  bool is_at_end() const { return text_.find_first_not_of(" \n") == std::string_view::npos; }

 private:
  std::string_view text_;
};

}  // namespace

std::vector<std::string> names_from_python(std::string_view text) {
  PythonReader reader(text);
  const bool is_dictionary = reader.take('{');
  if (!is_dictionary && !reader.take('[')) return {};
  const char end = is_dictionary ? '}' : ']';
  std::vector<std::string> names;
  while (!reader.take(end)) {
    if (!names.empty() && !reader.take(',')) return {};
    if (is_dictionary && (reader.index() != names.size() || !reader.take(':'))) return {};
    std::optional<std::string> name = reader.quoted();
    if (!name) return {};
    names.push_back(std::move(*name));
  }
  return reader.is_at_end() ? names : std::vector<std::string>();
}

std::string names_to_python(const std::vector<std::string>& names) {
  std::string result = "{";
  for (std::size_t i = 0; i < names.size(); ++i) {
    result += text(i == 0 ? "" : ", ", i, ": '");
    for (const char c : names[i]) {
      if (c == '\\' || c == '\'') result += '\\';
      result += c;
    }
    result += '\'';
  }
  return result + "}";
}

std::string name_of_class(const std::vector<std::string>& names, std::size_t classes,
                          std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  return names.size() == classes && at < classes ? names[at] : text("class ", index);
}

std::string name_conflict(const std::vector<std::string>& in_file,
                          const std::vector<std::string>& in_data) {
  for (std::size_t i = 0; i < std::min(in_file.size(), in_data.size()); ++i) {
    if (in_file[i] == in_data[i]) continue;
    return text("class ", i, " is '", in_file[i], "' in the file, '", in_data[i], "' in the data");
  }
  return {};
}

}  // namespace graft::cli
