#include "kiln/interface/python_arrays/bind.hpp"
#include "kiln/interface/python_arrays/error.hpp"

namespace kiln::python {
namespace {

struct dtype_alias {
  std::string_view name;
  dtype type;
};
constexpr dtype_alias numpy_names[] = {{"float64", dtype::f64},
                                       {"float32", dtype::f32},
                                       {"float16", dtype::f16},
                                       {"bfloat16", dtype::bf16},
                                       {"int8", dtype::i8},
                                       {"int16", dtype::i16},
                                       {"int32", dtype::i32},
                                       {"int64", dtype::i64},
                                       {"uint8", dtype::u8},
                                       {"uint16", dtype::u16},
                                       {"uint32", dtype::u32},
                                       {"uint64", dtype::u64},
                                       {"bool_", dtype::boolean},
                                       {"float8_e4m3fn", dtype::f8e4m3fn},
                                       {"float8_e5m2", dtype::f8e5m2},
                                       {"float8_e4m3fnuz", dtype::f8e4m3fnuz},
                                       {"float8_e5m2fnuz", dtype::f8e5m2fnuz},
                                       {"complex64", dtype::c64},
                                       {"complex128", dtype::c128}};

std::string name_of_type(py::handle object) {
  if (py::isinstance<py::str>(object)) return py::cast<std::string>(object);
  for (const char* attribute : {"name", "__name__"})  // numpy.dtype has the first, a type the second
    if (py::hasattr(object, attribute) && py::isinstance<py::str>(object.attr(attribute)))
      return py::cast<std::string>(object.attr(attribute));
  return py::cast<std::string>(py::repr(object));
}

const char* word_of(errc code) {
  constexpr const char* words[] = {
      "invalid_argument", "shape_mismatch", "unsupported", "not_found", "malformed", "io", "limit",
      "canceled",         "internal"};
  return words[static_cast<unsigned>(code)];
}

}  // namespace

dtype dtype_of_object(py::handle object) {
  const std::string name = name_of_type(object);
  for (std::size_t i = 0; i < all_dtypes; ++i)
    if (to_string(static_cast<dtype>(i)) == name) return static_cast<dtype>(i);
  for (const dtype_alias& a : numpy_names)
    if (a.name == name) return a.type;
  if (name.starts_with("str")) return dtype::string;  // numpy's texts of so many bits
  std::string known;
  for (std::size_t i = 0; i < all_dtypes; ++i) known.append(i ? ", " : "").append(to_string(static_cast<dtype>(i)));
  raise(errc::invalid_argument, "a dtype by its name: expected one of " + known + ", found '" + name + "'");
}

std::string path_of_object(py::handle object) {
  const py::object path = py::reinterpret_steal<py::object>(PyOS_FSPath(object.ptr()));
  if (!path) throw py::error_already_set();
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), &bytes)) throw py::error_already_set();
  return py::cast<std::string>(py::reinterpret_steal<py::bytes>(bytes));
}

void set_python_error() noexcept {
  try {
    try {
      throw;
    } catch (const error& e) {
      set_python_error_of(e);
    } catch (py::error_already_set& e) {
      e.restore();
    } catch (const py::builtin_exception& e) {
      e.set_error();
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
    }
  } catch (py::error_already_set& e) {  // while the error was made
    e.restore();
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of unknown type");
  }
}

void set_error_of_type(py::handle general, py::handle of_argument, const error& e) {
  const bool is_of_argument = e.code() == errc::invalid_argument || e.code() == errc::shape_mismatch ||
                              e.code() == errc::not_found || e.code() == errc::limit;
  const py::handle type = is_of_argument ? of_argument : general;
  const auto text = [](const std::string& s) {
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
  };
  py::object made = type(text(e.what()));
  made.attr("code") = word_of(e.code());
  made.attr("message") = text(e.message());
  made.attr("op") = text(e.op());
  made.attr("instruction") = text(e.instruction());
  made.attr("place") = text(e.source());
  made.attr("expected") = text(e.expected());
  made.attr("found") = text(e.found());
  PyErr_SetObject(type.ptr(), made.ptr());
}

}  // namespace kiln::python
