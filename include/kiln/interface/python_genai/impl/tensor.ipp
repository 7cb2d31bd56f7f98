#include <algorithm>
#include <limits>
#include <map>

#include "kiln/interface/python_genai/bind.hpp"
#include "kiln/onnx/element.hpp"

namespace kiln::python {
namespace {

// A struct, since pybind11 makes a dict of a map.
struct named_tensors {
  std::map<std::string, held_tensor, std::less<>> all;
};

held_tensor copy_of_object(py::handle object) {
  borrowed_array a;
  a.read(object, std::nullopt);
  return {a.value.copy(), {}, false};
}

language::tokens tokens_of(const argument& a) {
  const dtype t = a.get_shape().type;
  if (!is_integer(t))
    // an empty list has no element that tells its type
    if (a.elements() != 0) raise(fault::of(errc::invalid_argument, "type of tokens", "integers", t));
  language::tokens out;
  for (const std::int64_t id : a.to<std::int64_t>()) {
    if (id < 0 || id > std::numeric_limits<language::token>::max())
      raise(fault::of(errc::invalid_argument, "a token", "a number of 31 bits", id));
    out.push_back(static_cast<language::token>(id));
  }
  return out;
}

bool is_list(py::handle o) { return PyList_Check(o.ptr()) || PyTuple_Check(o.ptr()); }

// An array's rows; nothing at rank 0 and 1.
std::optional<std::vector<language::tokens>> rows_of(const argument& a) {
  const dims& lens = a.get_shape().lens;
  if (lens.size() < 2) return std::nullopt;
  if (lens.size() > 2) raise(fault::of(errc::invalid_argument, "rank of tokens", "1 or 2", lens.size()));
  const language::tokens all = tokens_of(a);
  const auto n = lens[1].value();
  std::vector<language::tokens> out;
  for (std::int64_t k = 0; k < lens[0].value(); ++k) out.emplace_back(all.begin() + k * n, all.begin() + (k + 1) * n);
  return out;
}

void bind_named(py::module_& m) {
  py::class_<named_tensors> c(m, "NamedTensors", "Tensors by name.");
  c.def(py::init<>());
  c.def("__getitem__", [](const named_tensors& t, const std::string& name) {
    const auto at = t.all.find(name);
    if (at == t.all.end()) throw py::key_error(name);
    return at->second;
  });
  c.def("__setitem__", [](named_tensors& t, const std::string& name, const py::object& value) {
    t.all.insert_or_assign(name, copy_of_object(value));
  });
  c.def("__delitem__", [](named_tensors& t, const std::string& name) {
    if (t.all.erase(name) == 0) throw py::key_error(name);
  });
  c.def("__contains__", [](const named_tensors& t, const std::string& name) { return t.all.contains(name); });
  c.def("__len__", [](const named_tensors& t) { return t.all.size(); });
  c.def(
      "keys",
      [](const named_tensors& t) {
        std::vector<std::string> names;
        for (const auto& [name, value] : t.all) names.push_back(name);
        return names;
      },
      "The names.");
}

}  // namespace

std::optional<held_tensor> own_array(py::handle object) {
  if (!py::isinstance<held_tensor>(object)) return std::nullopt;
  return py::cast<const held_tensor&>(object);
}
py::object object_of_array(held_tensor t) { return py::cast(std::move(t)); }

py::object numpy_of(argument a) {
  // borrowed: kept for the life of the process, as the module is
  static PyObject* const as_array = py::object(py::module_::import("numpy").attr("asarray")).release().ptr();
  return py::handle(as_array)(held_tensor{std::move(a), {}, false});
}
py::object numpy_of(std::span<const language::token> all) {
  return numpy_of(argument::of<language::token>({all.size()}, all));
}

language::tokens tokens_of_object(py::handle object) {
  borrowed_array a;
  a.read(object, dtype::i32);
  return tokens_of(a.value);
}

std::optional<std::vector<language::tokens>> token_rows_of_object(py::handle object) {
  if (!is_list(object)) {
    borrowed_array a;
    a.read(object, dtype::i32);
    return rows_of(a.value);
  }
  const auto list = py::reinterpret_borrow<py::sequence>(object);
  if (list.empty() || !py::hasattr(list[0], "__len__")) return std::nullopt;
  std::vector<language::tokens> out;
  for (const py::handle row : list) out.push_back(tokens_of_object(row));
  return out;
}

void bind_tensor(py::module_& m) {
  py::class_<held_tensor> c(m, "Tensor", array_slots(), py::module_local(),  // kiln._kiln has one as well
                            "A copy of an array, which others read without another copy: numpy.asarray(t).");
  c.def(py::init(&copy_of_object), py::arg("array"));
  c.def(
      "shape",
      [](const held_tensor& t) {
        std::vector<std::int64_t> lens;
        for (const dimension& d : t.value.get_shape().lens) lens.push_back(d.value());
        return lens;
      },
      "The extents.");
  c.def(
      "type", [](const held_tensor& t) { return static_cast<int>(onnx::to_element(t.value.get_shape().type)); },
      "ONNX's number of the elements' type: 1 is float32, 6 int32, 7 int64.");
  c.def(
      "data", [](const held_tensor& t) { return reinterpret_cast<std::uintptr_t>(t.value.data()); },
      "The address of the first element.");
  c.def(
      "as_numpy", [](const held_tensor& t) { return numpy_of(t.value); }, "A numpy array over the same memory.");
  c.def("__len__", [](const held_tensor& t) {
    const dims& lens = t.value.get_shape().lens;
    if (lens.empty()) throw py::type_error("a Tensor of rank 0 has no len()");
    return lens[0].value();
  });
  bind_array_protocols(c);
  bind_named(m);
}

}  // namespace kiln::python
