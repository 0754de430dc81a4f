#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace graft::cli {

/// What `graft --help` and `graft VERB --help` print: an example, then verbs or options in groups,
/// in lines of at most `columns`.
std::string help_text(const CLI::App& app, std::size_t columns);

/// Hands `help_text` to CLI11, at the terminal's width.
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace graft::cli
