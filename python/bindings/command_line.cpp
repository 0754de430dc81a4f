#include "tools/graft/command_line.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "python/bindings/bindings.h"

namespace graft::python {

void bind_command_line(nb::module_& module) {
  module.def(
      "command_line",
      [](const std::vector<nb::bytes>& given) {
        std::vector<std::string> arguments;
        for (const nb::bytes& argument : given) {
          arguments.emplace_back(argument.c_str(), argument.size());
        }
        std::vector<char*> pointers;
        for (std::string& argument : arguments) pointers.push_back(argument.data());
        pointers.push_back(nullptr);
        const nb::gil_scoped_release unlocked;
        return cli::command_line(static_cast<int>(arguments.size()), pointers.data());
      },
      nb::arg("arguments"),
      "What the program `graft` does with these, in the bytes that the system gave; returns its "
      "exit code.");
}

}  // namespace graft::python
