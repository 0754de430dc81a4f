#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "train/parameter_group.h"

namespace graft::cli {

/// What an option says of some parameters: "PATTERN=VALUE".
struct ByPattern {
  std::string pattern;
  std::string value;
};

/// Adds an option that is said once as VALUE, and any number of times as PATTERN=VALUE; a value
/// holds no '='. `take` gets the plain value, if there is one, and those by pattern.
CLI::Option* add_by_pattern(
    CLI::App& app, const std::string& names, const std::string& help,
    std::function<void(const std::string& plain, const std::vector<ByPattern>& others)> take);

/// Whether the option is one of add_by_pattern.
bool takes_patterns(const CLI::Option& option);
/// Whether what such an option says is PATTERN=VALUE.
bool is_by_pattern(const std::string& said);

/// The text as a number. Throws CLI::ValidationError that names the option and says what is wanted.
float number_of(const std::string& value, const std::string& option,
                const std::string& wanted = "a number");

/// --layer-decay and --unfreeze.
struct StageArguments {
  float layer_decay = 1.0F;
  std::vector<ByPattern> unfreeze = {};
};
void add_arguments(CLI::App& app, StageArguments& arguments);

/// Those that begin with later epochs. `batches`: of an epoch. Throws Error{argument} for an epoch
/// that the run does not have.
std::vector<ParameterGroup> late_groups(const StageArguments& arguments, int epochs,
                                        std::int64_t batches, int accumulate);

}  // namespace graft::cli
