#include "kiln/interface/migraphx/argument.hpp"

#include <algorithm>

#include "kiln/interface/migraphx/python/impl/bind.hpp"

namespace kiln::migraphx::python {
namespace {

using kiln::python::borrowed_array;

// MIGraphX's strides count forwards.
bool runs_backwards(const kiln::shape& s) {
  return std::any_of(s.strides.begin(), s.strides.end(), [](dimension d) { return d.value() < 0; });
}

bool in_host(const held_argument& a) { return !a.on_gpu && dlpack::is_host(a.where); }

py::list flat_list(const held_argument& a) {
  if (a.value.get_shape().type() == type_t::tuple_type)
    raise(errc::invalid_argument, "elements of one tensor: found a tuple");
  if (!in_host(a)) raise(errc::invalid_argument, "elements in the host's memory: use from_gpu()");
  if (a.value.get_shape().dynamic())
    raise(errc::invalid_argument, "elements of constant extents: found " + to_string(a.value.get_shape()));
  kiln::argument dense = a.value.value().contiguous();
  const kiln::shape flat(dense.get_shape().type, {dense.elements()});
  return kiln::python::list_of_argument(kiln::argument(flat, dense.data()));
}

std::string text_of(const held_argument& a) {
  if (!in_host(a) || a.value.get_shape().type() == type_t::tuple_type || a.value.get_shape().dynamic())
    return "migraphx.argument(" + to_string(a.value.get_shape()) + ")";
  constexpr std::size_t most = 1000;
  const py::list all = flat_list(a);
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
    out += (i ? ", " : "{") + py::cast<std::string>(py::str(all[i]));
  return all.empty() ? "{}" : out + (all.size() > most ? ", ...}" : "}");
}

[[noreturn]] void refuse_value(type_t type, std::size_t i, py::handle found, const std::string& expected) {
  raise(errc::invalid_argument, "value " + std::to_string(i) + " of " + std::string(to_string(type)) + ": expected " +
                                    expected + ", found " + py::cast<std::string>(py::repr(found)));
}

// Python's number for an element of whole numbers; fractions are cut off, as MIGraphX does.
py::object whole_number(py::handle v) {
  PyObject* out = PyIndex_Check(v.ptr()) ? PyNumber_Index(v.ptr()) : nullptr;
  if (!out && !PyErr_Occurred()) {
    const py::object real = py::reinterpret_steal<py::object>(PyNumber_Float(v.ptr()));
    out = real ? PyNumber_Long(real.ptr()) : nullptr;  // not of infinities, nor of what is no number
  }
  if (!out) PyErr_Clear();
  return py::reinterpret_steal<py::object>(out);
}

kiln::argument elements_of_list(const py::list& given, type_t type) {
  const dtype own = dtype_of_type(type);
  py::list items;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool is_text = py::isinstance<py::str>(given[i]) || py::isinstance<py::bytes>(given[i]);
    if (own == dtype::boolean) {
      const int truth = is_text ? -1 : PyObject_IsTrue(given[i].ptr());
      if (truth < 0) PyErr_Clear(), refuse_value(type, i, given[i], "a bool or number");
      items.append(py::bool_(truth == 1));
      continue;
    }
    py::object item = is_text         ? py::object()
                      : is_float(own) ? py::reinterpret_steal<py::object>(PyNumber_Float(given[i].ptr()))
                                      : whole_number(given[i]);
    PyErr_Clear();
    if (!item) refuse_value(type, i, given[i], is_float(own) ? "a real number" : "a whole number");
    if (!is_float(own)) {
      const int bits = static_cast<int>(8 * size_of(own)), positive = bits - (is_signed_integer(own) ? 1 : 0);
      const py::int_ end = py::int_(1) << py::int_(positive);
      const py::object least = is_signed_integer(own) ? py::object(-end) : py::object(py::int_(0));
      if (item < least || item >= end)
        refuse_value(type, i, given[i],
                     "a number from " + py::cast<std::string>(py::str(least)) + " to " +
                         py::cast<std::string>(py::str(end - py::int_(1))));
    }
    items.append(item);
  }
  return kiln::python::argument_of_list(items, own);
}

held_argument create_argument(const shape& s, const py::iterable& values) {
  const py::list given(values);
  if (given.size() != s.elements())
    raise(fault::of(errc::invalid_argument, "as many values as the shape has elements", s.elements(), given.size()));
  const kiln::argument read = elements_of_list(given, s.type());
  argument out(s);
  const std::size_t size = s.type_size();
  for (std::size_t i = 0; i < s.elements(); ++i)
    std::memcpy(out.data() + s.index(i) * size, read.data() + i * size, size);
  return {std::move(out)};
}

}  // namespace

held_argument argument_of_object(py::handle object, std::optional<dtype> wanted) {
  if (py::isinstance<held_argument>(object)) return py::cast<held_argument>(object);
  borrowed_array a;
  try {
    a.read(object, wanted);
  } catch (const error& e) {
    if (e.code() != errc::unsupported) throw;
    raise(errc::invalid_argument, "elements of an argument are real numbers or bools: " + e.message());
  }
  if (is_object(a.value.get_shape().type) || is_complex(a.value.get_shape().type))
    raise(fault::of(errc::invalid_argument, "element type of an argument", "a real number or bool",
                    a.value.get_shape().type));
  const dlpack::device where = a.where;
  const bool read_only = a.read_only;
  if (runs_backwards(a.value.get_shape())) return {argument(a.value.copy()), {}, false};
  return {argument(a.shared()), where, read_only};
}

kiln::python::held_tensor array_of_argument(const held_argument& a) {
  if (a.value.get_shape().type() == type_t::tuple_type) throw py::buffer_error("a tuple of arguments is no array");
  if (a.on_gpu) throw py::buffer_error("an argument in the GPU's memory: use from_gpu()");
  const kiln::argument& v = a.value.value();
  if (v.get_shape().rank() != 0) return {v, a.where, a.read_only};
  // one element: a share in its owner
  const auto release = [](void* held) { delete static_cast<kiln::argument*>(held); };
  auto* const data = const_cast<std::byte*>(v.data());
  const std::size_t bytes = size_of(v.get_shape().type);
  return {kiln::argument({v.get_shape().type, {1}}, buffer::borrow(data, bytes, new kiln::argument(v), release), data),
          a.where, a.read_only};
}

py::list objects_of_results(std::vector<argument> results, const parameter_map& parameters) {
  py::list out;
  for (argument& r : results) {
    const char* const data = r.data();
    for (const auto& [name, p] : parameters) {
      if (!data || !p.data() || data < p.data() || data >= p.data() + p.get_shape().bytes()) continue;
      const auto release = [](void* held) { delete static_cast<argument*>(held); };
      auto* const bytes = reinterpret_cast<std::byte*>(r.data());
      r = argument(r.get_shape(),
                   kiln::argument(r.value().get_shape(),
                                  buffer::borrow(bytes, r.get_shape().bytes(), new argument(p), release), bytes));
      break;
    }
    out.append(held_argument{std::move(r)});
  }
  return out;
}

void bind_argument(py::module_& m) {
  py::class_<held_argument> c(m, "argument", kiln::python::array_slots(),
                              "Elements with a shape, in memory that others read without a copy: numpy.array(a), "
                              "numpy.from_dlpack(a), memoryview(a). bf16 and fp8 show as uint16 and uint8.");
  c.def(py::init([](const py::object& data) {
          if (py::isinstance<shape>(data)) return held_argument{argument(py::cast<const shape&>(data))};
          return argument_of_object(data);
        }),
        py::arg("data"), "An argument over the memory of an array, which it keeps; or of zeros in a shape.");
  c.def("get_shape", [](const held_argument& a) { return a.value.get_shape(); });
  c.def("data_ptr", [](const held_argument& a) { return reinterpret_cast<std::uintptr_t>(a.value.data()); });
  c.def("tolist", flat_list, "The elements, in row-major order.");
  c.def_static(
      "save",
      [](const held_argument& a, const py::object& file) {
        save_argument(a.value, kiln::python::path_of_object(file));
      },
      py::arg("arg"), py::arg("filename"));
  c.def_static(
      "load", [](const py::object& file) { return held_argument{load_argument(kiln::python::path_of_object(file))}; },
      py::arg("filename"));
  c.def(
      "__eq__",
      [](const held_argument& a, const held_argument& b) {
        return in_host(a) && in_host(b) ? a.value == b.value : a.value.data() == b.value.data();
      },
      py::is_operator());
  c.def("__repr__", text_of);
  c.def(
      "__array__",
      [](const py::object& self, const py::object& dtype, const py::object& copy) {
        const py::object numpy = py::module_::import("numpy");
        const py::object seen = numpy.attr("asarray")(py::memoryview(self));
        const bool copies = !copy.is_none() && py::cast<bool>(copy);
        if (dtype.is_none()) return copies ? seen.attr("copy")() : seen;
        return py::object(seen.attr("astype")(dtype, py::arg("copy") = copies));
      },
      py::arg("dtype") = py::none(), py::arg("copy") = py::none());
  kiln::python::bind_array_protocols(c);
  m.def(
      "from_dlpack",
      [](const py::object& object) {
        dlpack::received r = kiln::python::receive_from(object);
        return held_argument{argument(std::move(r.value)), r.where, r.read_only};
      },
      py::arg("object"), "An argument over the memory of an object with __dlpack__, or of a capsule.");
  m.def("create_argument", create_argument, py::arg("s"), py::arg("values"), "Values, in row-major order, in a shape.");
  m.def(
      "generate_argument", [](const shape& s, std::size_t seed) { return held_argument{generate_argument(s, seed)}; },
      py::arg("s"), py::arg("seed") = 0, "Numbers that follow from the seed alone.");
  m.def(
      "fill_argument", [](const shape& s, double value) { return held_argument{fill_argument(s, value)}; },
      py::arg("s"), py::arg("value"), "The value in every element.");
  m.def(
      "argument_from_pointer",
      [](const shape& s, std::uintptr_t address) {
        return held_argument{argument(s, reinterpret_cast<void*>(address))};
      },
      py::arg("shape"), py::arg("address"), "An argument over memory that the caller keeps.");
}

}  // namespace kiln::migraphx::python

namespace kiln::python {

std::optional<held_tensor> own_array(py::handle object) {
  if (!py::isinstance<migraphx::python::held_argument>(object)) return std::nullopt;
  return migraphx::python::array_of_argument(py::cast<const migraphx::python::held_argument&>(object));
}
py::object object_of_array(held_tensor t) {
  return py::cast(migraphx::python::held_argument{migraphx::argument(std::move(t.value)), t.where, t.read_only});
}

}  // namespace kiln::python
