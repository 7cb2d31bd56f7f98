#include "kiln/core/error.hpp"

#include "kiln/interface/migraphx/python/impl/bind.hpp"

namespace kiln::migraphx::python {
namespace {

PyObject* error_type = nullptr;  // the module keeps it for the life of the process

}  // namespace

void bind_error(py::module_& m) {
  const py::tuple bases = py::make_tuple(py::handle(PyExc_ValueError), py::handle(PyExc_RuntimeError));
  const py::object type = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(
      "migraphx.Error",
      "What the caller gave wrong: a ValueError that is also the RuntimeError that MIGraphX raises. `expected` and "
      "`found` are the two sides of a broken rule, empty where there are none.",
      bases.ptr(), nullptr));
  if (!type) throw py::error_already_set();
  for (const char* field : {"expected", "found"}) type.attr(field) = "";
  m.attr("Error") = type;
  error_type = py::object(type).release().ptr();
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const error& e) {
      kiln::python::set_python_error_of(e);
    }
  });
}

}  // namespace kiln::migraphx::python

namespace kiln::python {

void set_python_error_of(const error& e) {
  const bool of_caller = e.code() == errc::invalid_argument || e.code() == errc::shape_mismatch ||
                         e.code() == errc::not_found || e.code() == errc::limit;
  if (!of_caller) return PyErr_SetString(PyExc_RuntimeError, e.what());
  const py::handle type = migraphx::python::error_type;
  const py::object made = type(e.what());
  made.attr("expected") = e.expected();
  made.attr("found") = e.found();
  PyErr_SetObject(type.ptr(), made.ptr());
}

}  // namespace kiln::python
