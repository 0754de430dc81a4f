#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

// graft._core, the compiled half of the Python package: one function a file of this folder, each
// of which adds its part to the module. What is better said in Python stands in python/graft.

namespace graft::python {

namespace nb = nanobind;

/// A Python object in hands that may drop it on any thread, with the interpreter's lock or without.
template <class Held>
std::shared_ptr<Held> shared_owner(Held held) {
  return {new Held(std::move(held)), [](Held* last) {
            const nb::gil_scoped_acquire lock;
            delete last;
          }};
}

void bind_errors();
void bind_models(nb::module_& module);
void bind_layers(nb::module_& module);
void bind_expressions(nb::module_& module);
void bind_losses(nb::module_& module);
void bind_optimizers(nb::module_& module);
void bind_data(nb::module_& module);
void bind_training(nb::module_& module);
void bind_federated(nb::module_& module);
void bind_sessions(nb::module_& module);
void bind_command_line(nb::module_& module);

}  // namespace graft::python
