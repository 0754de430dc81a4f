#include <graft/error.h>
#include <nanobind/stl/string.h>

#include <string>

#include "python/bindings/bindings.h"

namespace graft::python {
namespace {

constexpr const char* kDoc =
    "What Graft raises. `kind` is one of \"io\", \"model\", \"shape\", \"type\", \"device\", "
    "\"memory\", \"argument\", \"unsupported\" and \"numeric\"; the text names the found and the "
    "wanted value and the remedy.";

/// graft.Error; lives as long as the interpreter.
PyObject* error_type = nullptr;

void set_error(const Error& error) {
  const std::string kind(name(error.kind()));
  nb::object made = nb::handle(error_type)(error.what());
  made.attr("kind") = kind;
  PyErr_SetObject(error_type, made.ptr());
}

}  // namespace

void bind_errors(nb::module_& module) {
  nb::dict members;
  members["kind"] = "argument";
  error_type = PyErr_NewExceptionWithDoc("graft.Error", kDoc, PyExc_Exception, members.ptr());
  if (error_type == nullptr) nb::raise_python_error();
  module.attr("Error") = nb::borrow(error_type);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void* /*payload*/) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set_error(error);
    }
  });
}

}  // namespace graft::python
