#include <graft/version.h>
#include <nanobind/stl/string.h>

#include <string>

#include "python/bindings/bindings.h"

NB_MODULE(_core, module) {
  using namespace graft::python;
  // A trainer holds its loss, a function, whose globals often hold the trainer: Python cannot see
  // that circle, so it stands at exit, and nanobind would print a page about it.
  nb::set_leak_warnings(false);
  module.doc() = "The compiled half of graft.";
  module.def("version", [] { return std::string(graft::kVersion); });
  bind_errors();
  bind_models(module);
  bind_layers(module);
  bind_expressions(module);
  bind_losses(module);
  bind_optimizers(module);
  bind_data(module);
  bind_training(module);
  bind_federated(module);
  bind_sessions(module);
  bind_command_line(module);
}
