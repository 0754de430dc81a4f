#include "tools/graft/group_arguments.h"

#include "core/base/error.h"
#include "tools/graft/options.h"

namespace graft::cli {
namespace {

/// The pattern is empty where there is none.
ByPattern split_pattern(const std::string& text) {
  const std::size_t at = text.rfind('=');
  if (at == std::string::npos) return {"", text};
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace

CLI::Option* add_by_pattern(
    CLI::App& app, const std::string& names, const std::string& help,
    std::function<void(const std::string& plain, const std::vector<ByPattern>& others)> take) {
  const std::string name = names.substr(0, names.find(','));
  const auto parse = [name, take = std::move(take)](const std::vector<std::string>& all) {
    std::string plain;
    std::vector<ByPattern> others;
    for (const std::string& one : all) {
      ByPattern said = split_pattern(one);
      if (!said.pattern.empty()) {
        others.push_back(std::move(said));
      } else if (plain.empty()) {
        plain = one;
      } else {
        throw CLI::ValidationError(
            name, "is " + plain + " and " + one + ", wanted one for all, others as PATTERN=VALUE");
      }
    }
    take(plain, others);
  };
  return app.add_option_function<std::vector<std::string>>(names, parse, help);
}

bool takes_patterns(const CLI::Option& option) {
  return option.get_items_expected_max() > 1 && option.get_delimiter() == '\0';
}

bool is_by_pattern(const std::string& said) {
  return said.find('=') != std::string::npos;
}

float number_of(const std::string& value, const std::string& option, const std::string& wanted) {
  float number = 0.0F;
  if (!CLI::detail::lexical_cast(value, number)) {
    throw CLI::ValidationError(option, "'" + value + "', wanted " + wanted);
  }
  return number;
}

void add_arguments(CLI::App& app, StageArguments& arguments) {
  const OptionGroup group(app, "Parameters");
  app.add_option("--layer-decay", arguments.layer_decay,
                 "each layer's rate is this times that of the next, the last has --lr: what "
                 "comes first in a trained model changes least")
      ->check(between(1e-3, 1.0));
  add_by_pattern(app, "--unfreeze",
                 "parameters whose whole name matches train from this epoch on, and are frozen "
                 "before it",
                 [&](const std::string& plain, const std::vector<ByPattern>& others) {
                   if (!plain.empty()) {
                     throw CLI::ValidationError("--unfreeze",
                                                "'" + plain + "', wanted PATTERN=EPOCH");
                   }
                   arguments.unfreeze = others;
                 })
      ->type_name("PATTERN=EPOCH");
}

std::vector<ParameterGroup> late_groups(const StageArguments& arguments, int epochs,
                                        std::int64_t batches, int accumulate) {
  std::vector<ParameterGroup> groups;
  for (const ByPattern& said : arguments.unfreeze) {
    std::int64_t epoch = 0;
    if (!CLI::detail::lexical_cast(said.value, epoch) || epoch < 1 || epoch > epochs) {
      fail(ErrorKind::argument, "--unfreeze '", said.pattern, "=", said.value,
           "', wanted an epoch of the run, 1 to ", epochs);
    }
    groups.push_back({.pattern = said.pattern, .start = (epoch - 1) * batches / accumulate});
  }
  return groups;
}

}  // namespace graft::cli
