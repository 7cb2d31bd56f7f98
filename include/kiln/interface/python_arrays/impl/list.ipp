#include <pybind11/complex.h>
#include <algorithm>

#include <complex>

#include "kiln/core/object.hpp"
#include "kiln/interface/python_arrays/array.hpp"

namespace kiln::python {
namespace {

bool is_list(py::handle object) { return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()); }

std::string text_of(py::handle object) { return py::cast<std::string>(py::repr(object)); }

// The leaves of nested lists, in order, and the lists' lengths.
struct leaves {
  dims lens;
  std::vector<py::object> items;

  void append(py::handle object, std::size_t depth) {
    if (!is_list(object)) {
      if (depth != lens.size()) refuse();
      items.push_back(py::reinterpret_borrow<py::object>(object));
      return;
    }
    if (depth == lens.size() || lens[depth] != dimension(py::len(object))) refuse();
    for (const py::handle item : object) append(item, depth + 1);
  }
  [[noreturn]] static void refuse() {
    raise(errc::invalid_argument, "nested lists of equal lengths: found lists of several lengths");
  }
};

leaves leaves_of(py::handle object) {
  leaves out;
  for (py::object first = py::reinterpret_borrow<py::object>(object); is_list(first);) {
    if (out.lens.size() == max_rank) raise(fault::of(errc::limit, "depth of nested lists", max_rank, "more"));
    const std::size_t n = py::len(first);
    out.lens.push_back(n);
    if (n == 0) return out;
    first = py::reinterpret_borrow<py::object>(PySequence_Fast_GET_ITEM(first.ptr(), 0));
  }
  out.append(object, 0);
  return out;
}

// int and bool become i64 and bool, numbers with a float among them f32.
dtype natural_type(const std::vector<py::object>& items) {
  dtype out = items.empty() ? dtype::f32 : dtype::boolean;
  for (const py::object& o : items) {
    if (py::isinstance<py::str>(o) || py::isinstance<py::bytes>(o)) return dtype::string;
    if (PyComplex_Check(o.ptr())) return dtype::c128;
    if (PyFloat_Check(o.ptr()))
      out = dtype::f32;
    else if (!PyBool_Check(o.ptr()) && out == dtype::boolean)
      out = dtype::i64;
  }
  return out;
}

template <class T, class Read> argument encoded(const shape& s, const std::vector<py::object>& items, Read&& read) {
  small_vector<T> values;
  values.reserve(items.size());
  for (const py::object& o : items) {
    values.push_back(read(o.ptr()));
    if (PyErr_Occurred()) {
      PyErr_Clear();
      raise(errc::invalid_argument, "an element of " + std::string(to_string(s.type)) + ": found " + text_of(o));
    }
  }
  argument out(s);
  encode(s.type, values.data(), out.data(), static_cast<std::int64_t>(values.size()));
  return out;
}

std::vector<std::string> strings_in(const std::vector<py::object>& items) {
  std::vector<std::string> out;
  for (const py::object& o : items) {
    if (!py::isinstance<py::str>(o) && !py::isinstance<py::bytes>(o))
      raise(errc::invalid_argument, "an element of string: found " + text_of(o));
    out.push_back(py::cast<std::string>(o));
  }
  return out;
}

// Python's object for each element.
std::vector<py::object> objects_of(const argument& a) {
  std::vector<py::object> out;
  const auto append = [&](const auto& values, auto make) {
    for (const auto& v : values) out.push_back(make(v));
  };
  const dtype t = a.get_shape().type;
  if (t == dtype::string)
    append(strings_of(a), [](const std::string& s) { return py::object(py::str(s)); });
  else if (is_complex(t))
    append(complexes_of(a), [](std::complex<double> c) {
      return py::reinterpret_steal<py::object>(PyComplex_FromDoubles(c.real(), c.imag()));
    });
  else if (t == dtype::boolean)
    append(a.to<bool>(), [](bool b) { return py::object(py::bool_(b)); });
  else if (is_float(t))
    append(a.to<double>(), [](double d) { return py::object(py::float_(d)); });
  else if (is_unsigned_integer(t))
    append(a.to<std::uint64_t>(), [](std::uint64_t n) { return py::object(py::int_(n)); });
  else if (is_signed_integer(t))
    append(a.to<std::int64_t>(), [](std::int64_t n) { return py::object(py::int_(n)); });
  return out;
}

py::object nested(const std::vector<py::object>& items, const dims& lens, std::size_t depth, std::size_t& at) {
  if (depth == lens.size()) return items[at++];
  py::list out;
  for (std::int64_t i = 0; i < lens[depth].value(); ++i) out.append(nested(items, lens, depth + 1, at));
  return out;
}

// Sequences are lists, optionals a value or None, maps dicts; of rank 0.
py::object object_of_rank_0(const argument& a) {
  const auto of = [](const argument& item) { return object_of_array({item.owned(), {}, false}); };
  switch (a.get_shape().type) {
    case dtype::sequence: {
      py::list out;
      for (const argument& item : items_of(a)) out.append(of(item));
      return out;
    }
    case dtype::optional: {
      const argument* const value = value_of_optional(a);
      return value ? of(*value) : py::none();
    }
    default: {
      const map_object& entries = entries_of(a);
      py::dict out;
      const std::vector<py::object> keys = objects_of(entries.keys);
      for (std::size_t i = 0; i < keys.size(); ++i) out[keys[i]] = of(entries.values[i]);
      return out;
    }
  }
}

}  // namespace

argument argument_of_list(py::handle object, std::optional<dtype> wanted) {
  const leaves all = leaves_of(object);
  const dtype type = wanted ? *wanted : natural_type(all.items);
  const shape s(type, all.lens);
  if (type == dtype::string) return string_argument(s.lens, strings_in(all.items));
  if (type == dtype::sequence || type == dtype::optional || type == dtype::map)
    raise(fault::of(errc::unsupported, "element type of a list", "a number, bool or string", type));
  if (is_complex(type)) {
    std::vector<std::complex<double>> values;
    for (const py::object& o : all.items) values.push_back(py::cast<std::complex<double>>(o));
    return complex_argument(type, s.lens, values);
  }
  if (type == dtype::boolean)
    return encoded<bool>(s, all.items, [](PyObject* o) {
      if (!PyBool_Check(o)) PyErr_SetNone(PyExc_TypeError);
      return o == Py_True;
    });
  if (is_float(type)) return encoded<double>(s, all.items, [](PyObject* o) { return PyFloat_AsDouble(o); });
  const auto integer = [](PyObject* o) { return py::reinterpret_steal<py::object>(PyNumber_Index(o)); };
  if (type == dtype::u64)
    return encoded<std::uint64_t>(s, all.items, [&](PyObject* o) {
      const py::object n = integer(o);
      return n ? PyLong_AsUnsignedLongLong(n.ptr()) : 0;
    });
  // what does not fit its type would wrap
  const int bits = bits_of(type) - (is_signed_integer(type) ? 1 : 0);
  const std::int64_t most = bits >= 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
  const std::int64_t least = is_signed_integer(type) ? -most - 1 : 0;
  return encoded<std::int64_t>(s, all.items, [&](PyObject* o) {
    const py::object n = integer(o);
    const std::int64_t v = n ? PyLong_AsLongLong(n.ptr()) : 0;
    if (v < least || v > most) PyErr_SetNone(PyExc_OverflowError);
    return v;
  });
}

py::object list_of_argument(const argument& a) {
  const shape& s = a.get_shape();
  if (s.type == dtype::sequence || s.type == dtype::optional || s.type == dtype::map) return object_of_rank_0(a);
  std::size_t at = 0;
  return nested(objects_of(a.contiguous()), s.lens, 0, at);
}

}  // namespace kiln::python
