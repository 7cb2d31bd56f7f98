#include "kiln/core/shape.hpp"

#include <pybind11/operators.h>

#include "kiln/interface/python/impl/bind.hpp"

namespace kiln::python {
dimension dimension_of_object(py::handle object) {
  if (py::isinstance<dimension>(object)) return py::cast<dimension>(object);
  if (py::isinstance<py::str>(object)) return dimension::symbol(py::cast<std::string>(object));
  const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (!number) {
    PyErr_Clear();
    raise(errc::invalid_argument,
          "an extent is an int, a Dim or a symbol's name: found " + py::cast<std::string>(py::repr(object)));
  }
  const long long n = PyLong_AsLongLong(number.ptr());
  if (n == -1 && PyErr_Occurred()) throw py::error_already_set();
  return n;
}

dims dims_of_object(py::handle object) {
  dims out;
  for (const py::handle d : py::iter(object)) {
    if (out.size() == max_rank) raise(fault::of(errc::limit, "number of dims", max_rank, py::len(object)));
    out.push_back(dimension_of_object(d));
  }
  return out;
}

py::object object_of_dimension(dimension d) {
  if (d.is_constant()) return py::int_(d.value());
  return py::cast(d);
}

py::tuple object_of_dims(const dims& lens) {
  py::tuple out(lens.size());
  for (std::size_t i = 0; i < lens.size(); ++i) out[i] = object_of_dimension(lens[i]);
  return out;
}

void bind_shape(py::module_& m) {
  py::class_<dimension> dim(m, "Dim",
                            "An extent that a run decides: a symbol, or an expression over symbols with + - * // %.");
  const auto binary = [&dim](const char* name, const char* reflected, auto f) {
    dim.def(
        name, [f](dimension a, const py::object& b) { return object_of_dimension(f(a, dimension_of_object(b))); },
        py::is_operator(), py::arg("other"));
    dim.def(
        reflected, [f](dimension a, const py::object& b) { return object_of_dimension(f(dimension_of_object(b), a)); },
        py::is_operator(), py::arg("other"));
  };
  binary("__add__", "__radd__", [](dimension a, dimension b) { return a + b; });
  binary("__sub__", "__rsub__", [](dimension a, dimension b) { return a - b; });
  binary("__mul__", "__rmul__", [](dimension a, dimension b) { return a * b; });
  binary("__floordiv__", "__rfloordiv__", [](dimension a, dimension b) { return a / b; });
  binary("__mod__", "__rmod__", [](dimension a, dimension b) { return a % b; });
  dim.def(
      "__eq__",
      [](dimension a, const py::object& b) { return py::isinstance<dimension>(b) && a == py::cast<dimension>(b); },
      py::arg("other"));
  dim.def("__hash__", [](dimension a) { return std::hash<std::int64_t>()(a.raw()); });
  dim.def("__repr__", [](dimension a) { return to_string(a); });
  dim.def_property_readonly(
      "min", [](dimension a) { return a.min(); }, "The least value for any values of the symbols.");
  dim.def_property_readonly(
      "max", [](dimension a) { return a.max(); }, "The greatest value for any values of the symbols.");
  m.def(
      "symbol",
      [](const std::string& name, std::int64_t min, const py::object& max) {
        if (name.empty() || min < 0)
          raise(errc::invalid_argument, "a symbol has a name and bounds with 0 <= min <= max: found '" + name +
                                            "' from " + std::to_string(min));
        if (max.is_none()) return dimension::symbol(name, min);
        const auto most = py::cast<std::int64_t>(max);
        if (most < min)
          raise(errc::invalid_argument, "a symbol has a name and bounds with 0 <= min <= max: found '" + name +
                                            "' in [" + std::to_string(min) + ", " + std::to_string(most) + "]");
        return dimension::symbol(name, min, most);
      },
      py::arg("name"), py::arg("min") = 0, py::arg("max") = py::none(),
      "A symbol: an extent that each run binds to a number in [min, max].");
}

}  // namespace kiln::python
