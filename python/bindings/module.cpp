#include <graft/version.h>

#include "python/bindings/bindings.h"

NB_MODULE(_core, module) {
  using namespace graft::python;
  module.doc() = "The compiled half of graft.";
  module.attr("__version__") = std::string_view(graft::kVersion).data();
  bind_errors(module);
  bind_models(module);
  bind_layers(module);
  bind_expressions(module);
  bind_losses(module);
  bind_optimizers(module);
  bind_data(module);
  bind_training(module);
  bind_sessions(module);
  bind_command_line(module);
}
