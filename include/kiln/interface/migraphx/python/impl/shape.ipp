#include "kiln/interface/migraphx/shape.hpp"

#include "kiln/interface/migraphx/python/impl/bind.hpp"

namespace kiln::migraphx::python {
namespace {

std::vector<dynamic_dimension> ranges_of_object(py::handle object) {
  std::vector<dynamic_dimension> out;
  for (const py::handle d : py::iter(object)) {
    if (py::isinstance<dynamic_dimension>(d)) {
      out.push_back(py::cast<dynamic_dimension>(d));
      continue;
    }
    const auto n = py::cast<std::size_t>(py::reinterpret_borrow<py::object>(d));  // a number is a range of one
    out.push_back({n, n, {}});
  }
  return out;
}

shape make_shape(const py::object& type, const py::object& lens, const py::object& strides,
                 const py::object& permutation, const py::object& dyn_dims) {
  const type_t t = type_of_object(type);
  if (!dyn_dims.is_none()) {
    if (!lens.is_none() || !strides.is_none() || !permutation.is_none())
      raise(errc::invalid_argument, "a shape has dyn_dims, or lens with strides or a permutation: found both");
    return {t, ranges_of_object(dyn_dims)};
  }
  const std::vector<std::size_t> extents = lens.is_none() ? std::vector<std::size_t>{1} : sizes_of_object(lens);
  if (!strides.is_none() && !permutation.is_none())
    raise(errc::invalid_argument, "a shape has strides or a permutation: found both");
  if (!permutation.is_none()) {
    std::vector<std::int64_t> order;
    for (const std::size_t n : sizes_of_object(permutation)) order.push_back(static_cast<std::int64_t>(n));
    return shape::permuted(t, extents, order);
  }
  if (strides.is_none()) return extents.empty() ? shape(t) : shape(t, extents);
  const std::vector<std::size_t> steps = sizes_of_object(strides);
  if (extents.empty() && steps.empty()) return shape(t);
  return {t, extents, steps};
}

std::string text_of(const dynamic_dimension& d) {
  std::string out = "[" + std::to_string(d.min) + ", " + std::to_string(d.max);
  for (const std::size_t n : d.optimals) out += (n == *d.optimals.begin() ? ", {" : ", ") + std::to_string(n);
  return out + (d.optimals.empty() ? "]" : "}]");
}

}  // namespace

type_t type_of_object(py::handle object) {
  if (py::isinstance<type_t>(object)) return py::cast<type_t>(object);
  if (PyIndex_Check(object.ptr()))
    return checked_type(py::cast<std::int64_t>(py::int_(py::reinterpret_borrow<py::object>(object))));
  if (!py::isinstance<py::str>(object)) throw py::type_error("a type is a name or a member of shape.type_t");
  return type_named(py::cast<std::string>(object));
}

std::vector<std::size_t> sizes_of_object(py::handle object) {
  std::vector<std::size_t> out;
  for (const py::handle n : py::iter(object)) {
    const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(n.ptr()));
    if (!number) throw py::error_already_set();
    const long long value = PyLong_AsLongLong(number.ptr());
    if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
    if (value < 0) raise(fault::of(errc::invalid_argument, "a number of extents or strides", "at least 0", value));
    out.push_back(static_cast<std::size_t>(value));
  }
  return out;
}

void bind_shape(py::module_& m) {
  py::class_<shape> c(m, "shape", "Element type, extents and strides in elements, or ranges of extents.");
  py::enum_<type_t> types(c, "type_t", "Types of elements.");
  for (std::size_t i = 0; i < type_count; ++i) {
    const auto t = static_cast<type_t>(i);
    types.value(std::string(to_string(t)).c_str(), t);
  }
  py::class_<dynamic_dimension>(c, "dynamic_dimension", "An extent that a run binds to a number in [min, max].")
      .def(py::init<>())
      .def(py::init([](std::size_t min, std::size_t max, std::set<std::size_t> optimals) {
             return dynamic_dimension{min, max, std::move(optimals)};
           }),
           py::arg("min"), py::arg("max"), py::arg("optimals") = std::set<std::size_t>())
      .def_readwrite("min", &dynamic_dimension::min)
      .def_readwrite("max", &dynamic_dimension::max)
      .def_readwrite("optimals", &dynamic_dimension::optimals)
      .def("is_fixed", &dynamic_dimension::is_fixed)
      .def(py::self == py::self)  // NOLINT(misc-redundant-expression)
      .def("__repr__", text_of);
  c.def(py::init(&make_shape), py::arg("type") = "float", py::arg("lens") = py::none(), py::arg("strides") = py::none(),
        py::arg("permutation") = py::none(), py::arg("dyn_dims") = py::none());
  c.def("type", &shape::type);
  c.def("lens", &shape::lens);
  c.def("strides", &shape::strides);
  c.def("ndim", &shape::ndim);
  c.def("elements", &shape::elements);
  c.def("bytes", &shape::bytes);
  c.def("type_string", [](const shape& s) { return std::string(to_string(s.type())); });
  c.def("type_size", &shape::type_size);
  c.def("dyn_dims", &shape::dyn_dims);
  c.def("packed", &shape::packed);
  c.def("transposed", &shape::transposed);
  c.def("broadcasted", &shape::broadcasted);
  c.def("standard", &shape::standard);
  c.def("scalar", &shape::scalar);
  c.def("dynamic", &shape::dynamic);
  c.def(py::self == py::self);  // NOLINT(misc-redundant-expression)
  c.def("__repr__", [](const shape& s) { return to_string(s); });
}

}  // namespace kiln::migraphx::python
