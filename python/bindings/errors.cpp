#include <graft/error.h>
#include <nanobind/stl/string.h>

#include <string>

#include "python/bindings/bindings.h"

namespace graft::python {

/// graft.Error is a class of Python (python/graft/error.py), looked up when it is needed.
void bind_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void* /*payload*/) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const nb::object type = nb::module_::import_("graft.error").attr("Error");
      const nb::object made = type(std::string(error.what()), std::string(name(error.kind())));
      PyErr_SetObject(type.ptr(), made.ptr());
    }
  });
}

}  // namespace graft::python
