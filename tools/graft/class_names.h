#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Names of the classes that a model tells apart.
namespace graft::cli {

/// What Python prints of a dictionary, {0: 'person', 1: 'it\'s'}, or of a list, ['person', ...], as
/// the names in order; empty for anything else.
std::vector<std::string> names_from_python(std::string_view text);
/// The dictionary of these names.
std::string names_to_python(const std::vector<std::string>& names);

/// The name, or "class 3" unless there are as many names as classes.
std::string name_of_class(const std::vector<std::string>& names, std::size_t classes,
                          std::int64_t index);

/// "class 3 is 'Dress' in the file, 'cat' in the data" for the first that differs; empty where they
/// agree or one of them has no names.
std::string name_conflict(const std::vector<std::string>& in_file,
                          const std::vector<std::string>& in_data);

}  // namespace graft::cli
