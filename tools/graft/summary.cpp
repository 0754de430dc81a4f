#include "tools/graft/summary.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <ostream>

#include "core/base/error.h"
#include "tools/graft/format_internal.h"

namespace graft::cli {
namespace {

/// As in the other tables of the command line.
constexpr std::size_t kTitleColumns = 13;

struct NameGroup {
  std::string name;
  std::int64_t numbers = 0;
  std::int64_t names = 0;

  std::string describe() const {
    return text(name, ' ', with_commas(numbers), names > 1 ? text(" (", names, ")") : "");
  }
  static std::string stem(const std::string& name) {
    return name.substr(0, name.find_first_of("./:", 1));
  }
};

}  // namespace

std::size_t text_columns() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0) {
    return size.ws_col;
  }
  return std::numeric_limits<std::size_t>::max();
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns,
                    std::string_view gap) {
  std::string result;
  std::size_t used = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(gap, at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    if (at > 0 && used + gap.size() + piece.size() > columns) {
      result += '\n' + std::string(indent, ' ');
      used = indent;
    } else if (at > 0) {
      result += gap;
      used += gap.size();
    }
    result += piece;
    used += piece.size();
    at = end + gap.size();
  }
  return result;
}

void Summary::print(std::ostream& out, std::size_t columns) const {
  for (const Row& row : rows_) {
    std::string title = row.title;
    title.resize(std::max(kTitleColumns, title.size() + 1), ' ');
    out << title << wrapped(row.text, kTitleColumns, columns, row.gap) << '\n';
  }
}

std::string grouped(const std::vector<NamedCount>& names, std::size_t most) {
  std::vector<NameGroup> groups;
  for (const auto& [name, count] : names) {
    const auto is_in = [stem = NameGroup::stem(name)](const NameGroup& group) {
      return NameGroup::stem(group.name) == stem;
    };
    auto at = std::ranges::find_if(groups, is_in);
    if (at == groups.end()) {
      if (groups.size() > most) {
        at = groups.end() - 1;
        at->name = "others";
      } else {
        at = groups.insert(at, NameGroup{.name = name});
      }
    }
    at->numbers += count;
    if (++at->names == 2 && at->name != "others") at->name = NameGroup::stem(at->name) + ".*";
  }
  std::string list;
  for (const NameGroup& group : groups) list += (list.empty() ? "" : "  ") + group.describe();
  return list;
}

}  // namespace graft::cli
