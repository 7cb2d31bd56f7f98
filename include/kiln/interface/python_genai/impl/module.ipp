#include "kiln/interface/python_arrays/error.hpp"
#include "kiln/interface/python_genai/bind.hpp"

namespace kiln::python {
namespace {

// Borrowed: the module keeps them for the life of the process.
PyObject* error_type = nullptr;
PyObject* argument_error_type = nullptr;

py::object new_error(const char* name, const char* doc, const py::tuple& bases) {
  py::object type = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(name, doc, bases.ptr(), nullptr));
  if (!type) throw py::error_already_set();
  return type;
}

}  // namespace

void set_python_error_of(const error& e) { set_error_of_type(error_type, argument_error_type, e); }

void bind_error(py::module_& m) {
  const py::module_ kiln = py::module_::import("kiln._kiln");
  const py::object general =
      new_error("kiln.genai.Error", "A kiln.Error that is also the RuntimeError that ONNX Runtime GenAI raises.",
                py::make_tuple(kiln.attr("Error"), py::handle(PyExc_RuntimeError)));
  m.attr("Error") = general;
  const py::object of_argument =
      new_error("kiln.genai.ArgumentError", "An Error whose cause is what the caller gave: a kiln.ArgumentError.",
                py::make_tuple(kiln.attr("ArgumentError"), general));
  m.attr("ArgumentError") = of_argument;
  error_type = py::object(general).release().ptr();
  argument_error_type = py::object(of_argument).release().ptr();
  py::register_local_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const error& e) {
      set_python_error_of(e);
    }
  });
}

}  // namespace kiln::python

PYBIND11_MODULE(_genai, m) {
  using namespace kiln::python;
  m.doc() = "The compiled half of kiln.genai.";
  bind_error(m);
  bind_tensor(m);
  bind_model(m);
  bind_tokenizer(m);
  bind_params(m);
  bind_generator(m);
}
