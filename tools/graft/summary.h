#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace graft::cli {

/// The columns of the terminal behind stdout; without one, as many as any line needs.
std::size_t text_columns();

/// The text in lines of at most `columns`, broken where `gap` stands; the first begins at column
/// `indent`, the others with as many spaces. What is too long between two gaps stays whole.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns,
                    std::string_view gap = " ");

/// A table of two columns: titles, and text that is wrapped to the terminal's width.
class Summary {
 public:
  void row(std::string title, std::string text, std::string gap = " ") {
    rows_.push_back({std::move(title), std::move(text), std::move(gap)});
  }
  void print(std::ostream& out, std::size_t columns = text_columns()) const;

 private:
  struct Row {
    std::string title;
    std::string text;
    std::string gap;
  };

  std::vector<Row> rows_;
};

/// A name, and how many numbers it holds.
using NamedCount = std::pair<std::string, std::int64_t>;

/// "features.* 1,234 (12)  head 10", with two spaces as gap: the names by what stands before their
/// first '.', '/' or ':', with the sum of their numbers, and how many they are where they are
/// several; groups that come after the first `most` are one: "others 567 (8)".
std::string grouped(const std::vector<NamedCount>& names, std::size_t most = 8);

}  // namespace graft::cli
