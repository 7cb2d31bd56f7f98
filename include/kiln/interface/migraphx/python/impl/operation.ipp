#include "kiln/interface/migraphx/operation.hpp"

#include "kiln/interface/migraphx/python/impl/bind.hpp"

namespace kiln::migraphx::python {
namespace {

// As MIGraphX numbers them.
enum class pooling_mode { average, max, lpnorm };
enum class rnn_direction { forward, reverse, bidirectional };

constexpr std::size_t most_nested = 32;  // as in text

attributes value_of(py::handle object, std::size_t depth);

std::string text_of(py::handle word) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(word.ptr(), &size);
  if (text) return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();  // lone surrogates
  raise(errc::invalid_argument, "words are Unicode: found " + py::cast<std::string>(py::repr(word)));
}

attributes list_of(py::handle items, std::size_t depth) {
  attributes out = attributes::array();
  for (const py::handle item : py::iter(items)) out.push_back(value_of(item, depth + 1));
  return out;
}

attributes dict_of(const py::dict& items, std::size_t depth) {
  attributes out = attributes::object();
  for (const auto& [key, value] : items) {
    if (!py::isinstance<py::str>(key))
      raise(errc::invalid_argument, "names are words: found " + py::cast<std::string>(py::repr(key)));
    out[text_of(key)] = value_of(value, depth + 1);
  }
  return out;
}

attributes integer_of(const py::object& number) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) return static_cast<std::int64_t>(value);
  const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
  if (overflow > 0 && !PyErr_Occurred()) return static_cast<std::uint64_t>(large);
  PyErr_Clear();
  raise(errc::invalid_argument, "whole numbers have 64 bits: found " + py::cast<std::string>(py::repr(number)));
}

// Attributes of an operator or options of a macro; errors name which.
attributes attributes_of_keywords(const std::string& of, const py::kwargs& values) {
  attributes out = attributes::object();
  for (const auto& [key, value] : values) {
    const std::string name = py::cast<std::string>(key);
    try {
      out[name] = value_of(value, 0);
    } catch (const error& e) {
      raise_of("attribute '" + name + "' of '" + of + "'", e);
    }
  }
  return out;
}

attributes shape_of(const shape& s) {
  if (s.dynamic()) {
    attributes ranges = attributes::array();
    for (const dynamic_dimension& d : s.dyn_dims())
      ranges.push_back({{"min", d.min}, {"max", d.max}, {"optimals", d.optimals}});
    return {{"type", std::string(to_string(s.type()))}, {"dynamic_dimensions", std::move(ranges)}};
  }
  return {{"type", std::string(to_string(s.type()))}, {"lens", s.lens()}, {"strides", s.strides()}};
}

attributes value_of(py::handle object, std::size_t depth) {
  if (depth > most_nested)
    raise(fault::of(errc::limit, "values within another", most_nested, "more, or a list within itself"));
  PyObject* const o = object.ptr();
  if (o == Py_None) return nullptr;
  if (PyBool_Check(o)) return o == Py_True;
  if (py::isinstance<py::str>(object)) return text_of(object);
  if (py::isinstance<py::dict>(object)) return dict_of(py::reinterpret_borrow<py::dict>(object), depth);
  if (py::isinstance<shape>(object)) return shape_of(py::cast<const shape&>(object));
  if (py::isinstance<dynamic_dimension>(object)) {
    const auto& d = py::cast<const dynamic_dimension&>(object);
    return {{"min", d.min}, {"max", d.max}, {"optimals", d.optimals}};
  }
  if (PyList_Check(o) || PyTuple_Check(o) || PyAnySet_Check(o)) return list_of(object, depth);
  if (PyIndex_Check(o)) {  // also numpy's integers, and members of enums
    const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(o));
    if (number) return integer_of(number);
    PyErr_Clear();  // an array that is no single integer
  }
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (py::hasattr(object, "tolist")) return value_of(object.attr("tolist")(), depth + 1);  // numpy's scalars, arrays
  raise(errc::invalid_argument, "expected a bool, number, word, shape or a list or dict of these, found " +
                                    py::cast<std::string>(py::repr(object)));
}

}  // namespace

py::object object_of_attributes(const attributes& value) {
  if (value.is_boolean()) return py::bool_(value.get<bool>());
  if (value.is_number_unsigned()) return py::int_(value.get<std::uint64_t>());
  if (value.is_number_integer()) return py::int_(value.get<std::int64_t>());
  if (value.is_number()) return py::float_(value.get<double>());
  if (value.is_string()) return py::str(value.get<std::string>());
  if (value.is_array()) {
    py::list out;
    for (const attributes& item : value) out.append(object_of_attributes(item));
    return out;
  }
  if (!value.is_object()) return py::none();
  py::dict out;
  for (const auto& [key, item] : value.items()) out[key.c_str()] = object_of_attributes(item);
  return out;
}

void bind_operation(py::module_& m) {
  py::class_<operation> c(m, "op", "An operator by its name, with attributes by keyword.");
  py::enum_<pooling_mode>(c, "pooling_mode")
      .value("average", pooling_mode::average)
      .value("max", pooling_mode::max)
      .value("lpnorm", pooling_mode::lpnorm);
  py::enum_<rnn_direction>(c, "rnn_direction")
      .value("forward", rnn_direction::forward)
      .value("reverse", rnn_direction::reverse)
      .value("bidirectional", rnn_direction::bidirectional);
  c.def(py::init([](const std::string& name, const py::kwargs& values) {
          return operation(name, attributes_of_keywords(name, values));
        }),
        py::arg("name"));
  c.def("name", &operation::name);
  c.def(
      "values", [](const operation& op) { return object_of_attributes(op.values()); },
      "The attributes, those with a default included.");
  c.def(py::self == py::self);  // NOLINT(misc-redundant-expression)
  c.def("__repr__", [](const operation& op) { return to_string(op); });

  py::class_<macro> k(m, "macro", "The operators that a composite one stands for, by its name, with options.");
  k.def(py::init([](const std::string& name, const py::kwargs& values) {
          return macro{name, attributes_of_keywords(name, values)};
        }),
        py::arg("name"));
  k.def("name", [](const macro& of) { return of.name; });
  k.def("options", [](const macro& of) { return object_of_attributes(of.options); });
}

}  // namespace kiln::migraphx::python
