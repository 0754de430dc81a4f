// The manual page in the language of man(7), made from the verbs and options themselves.
#include <CLI/CLI.hpp>
#include <iostream>

#include "graft/version.h"
#include "tools/graft/options.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

/// Text in which nothing is a request: backslashes, dashes, and dots and quotes that begin a line.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool begins_line = result.empty() || result.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

void print_options(const CLI::App& app) {
  for (const OptionFacts& option : facts_of(app)) {
    std::cout << ".TP\n.B " << roff(option.usage()) << '\n' << roff(option.help()) << ".\n";
  }
}

void print_verb(const CLI::App& verb) {
  std::cout << ".SS " << roff(verb.get_name()) << '\n'
            << roff(verb.get_description()) << ".\n.PP\n.B " << roff(usage_of(verb)) << '\n';
  print_options(verb);
  if (!verb.get_footer().empty()) std::cout << ".PP\n.nf\n" << roff(verb.get_footer()) << "\n.fi\n";
  if (const Verb* const row = find_verb(verb.get_name())) {
    std::cout << ".PP\nExample:\n.PP\n.EX\ngraft " << roff(row->example) << "\n.EE\n";
  }
}

constexpr const char* kSettings =
    R"(.SH SETTINGS
What a verb's option says comes from the first of these that has it: the command line; the variable
GRAFT_VERB_OPTION of the environment, as GRAFT_TRAIN_LR; the variable GRAFT_OPTION, as GRAFT_LR, but
for the verbs new and edit; the member of that name in the JSON file that \-\-config names; the
default. Flags are 1 or 0, true or false.
.SH EXIT STATUS
0 done; 1 wrong use; 2 a bad model or bad data; 3 out of memory; 4 interrupted, what was reached is
saved; 5 the loss or a parameter became NaN or infinite.
.SH ENVIRONMENT
NO_COLOR: if set, no colours.
)";

}  // namespace

Run add_man(CLI::App& app) {
  return [&app] {
    const CLI::App& root = *app.get_parent();
    std::cout << ".TH GRAFT 1 \"\" \"Graft " << kVersion << "\"\n.SH NAME\ngraft \\- "
              << "trains ONNX models\n.SH SYNOPSIS\n.B " << roff(usage_of(root)) << "\n.SH VERBS\n";
    for (const CLI::App* verb : verbs_of(root)) print_verb(*verb);
    std::cout << kSettings;
    return ok;
  };
}

}  // namespace graft::cli
