#include "kiln/core/error.hpp"

#include "kiln/interface/python/impl/bind.hpp"
#include "kiln/interface/python_arrays/error.hpp"

namespace kiln::python {
namespace {

// Borrowed: the module keeps them for the life of the process.
PyObject* error_type = nullptr;
PyObject* argument_error_type = nullptr;

}  // namespace

void set_python_error_of(const error& e) { set_error_of_type(error_type, argument_error_type, e); }

void bind_error(py::module_& m) {
  const auto exception = [&](const char* name, const char* doc, const py::handle& bases) {
    const std::string full = std::string("kiln.") + name;
    py::object type =
        py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr));
    for (const char* field : {"code", "message", "op", "instruction", "place", "expected", "found"})
      type.attr(field) = "";
    m.attr(name) = type;
    return type.release().ptr();
  };
  error_type =
      exception("Error",
                "What kiln raises. `code` is one of invalid_argument, shape_mismatch, unsupported, not_found, "
                "malformed, io, limit, canceled and internal; `message` says what is wrong without the places; "
                "`op`, `instruction` and `place` (an ONNX node, a file) say where; `expected` and `found` are "
                "the two sides of a broken rule. What is not known is empty.",
                py::handle(PyExc_Exception));
  argument_error_type = exception(
      "ArgumentError",
      "An Error whose cause is what the caller gave (invalid_argument, shape_mismatch, not_found, limit): also a "
      "ValueError.",
      py::make_tuple(py::handle(error_type), py::handle(PyExc_ValueError)));
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const error& e) {
      set_python_error_of(e);
    }
  });
}

}  // namespace kiln::python
