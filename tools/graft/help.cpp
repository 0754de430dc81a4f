#include "tools/graft/help.h"

#include <algorithm>

#include "tools/graft/options.h"
#include "tools/graft/summary.h"

namespace graft::cli {
namespace {

constexpr std::size_t kIndent = 2;

/// "  --lr NUMBER          learning rate": the text begins at `column`, on a line of its own where
/// the head is too long.
std::string entry(const std::string& head, const std::string& description, std::size_t column,
                  std::size_t columns) {
  std::string line = std::string(kIndent, ' ') + wrapped(head, column, columns);
  if (description.empty()) return line + '\n';
  const std::size_t last_line = line.size() - (line.rfind('\n') + 1);
  if (last_line + kIndent > column) {
    line += '\n' + std::string(column, ' ');
  } else {
    line.append(column - last_line, ' ');
  }
  return line + wrapped(description, column, columns) + '\n';
}

std::string verbs_text(const CLI::App& app, std::size_t columns) {
  constexpr std::size_t kColumn = 15;
  std::string result;
  std::string heading;
  for (const CLI::App* verb : verbs_of(app)) {
    if (verb->get_group() != heading) result += '\n' + (heading = verb->get_group()) + '\n';
    result += entry(verb->get_name(), verb->get_description(), kColumn, columns);
  }
  return result;
}

std::string options_text(const CLI::App& app, std::size_t columns) {
  const std::size_t column = columns < 80 ? 8 : 30;
  const std::vector<OptionFacts> options = facts_of(app);
  std::string result;
  for (const std::string& group : groups_of(options)) {
    result += '\n' + group + '\n';
    for (const OptionFacts& option : options) {
      if (option.group == group) result += entry(option.usage(), option.help(), column, columns);
    }
  }
  return result;
}

/// The footer keeps its lines: it may be a table.
std::string footer_text(const CLI::App& app, std::size_t columns) {
  std::string result;
  std::string lines = app.get_footer();
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    result += wrapped(std::string_view(lines).substr(at, end - at), 4, columns) + '\n';
    at = end + 1;
  }
  return result.empty() ? result : '\n' + result;
}

}  // namespace

std::string help_text(const CLI::App& app, std::size_t columns) {
  const bool is_verb = app.get_parent() != nullptr;
  std::string result = wrapped(app.get_description(), 0, columns) + "\n\n";
  result += "usage:   " + wrapped(usage_of(app), 9, columns) + '\n';
  if (const Verb* const verb = find_verb(is_verb ? app.get_name() : "train")) {
    result += wrapped(std::string("example: graft ") + verb->example, 9, columns) + '\n';
  }
  if (!is_verb) result += verbs_text(app, columns);
  return result + options_text(app, columns) + footer_text(app, columns);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/,
                                     CLI::AppFormatMode /*mode*/) const {
  constexpr std::size_t kReadable = 100;
  return help_text(*app, std::min(text_columns(), kReadable));
}

}  // namespace graft::cli
