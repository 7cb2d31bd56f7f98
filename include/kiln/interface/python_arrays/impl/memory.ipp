#include "kiln/interface/python_arrays/array.hpp"

namespace kiln::python {
namespace {

// What Python sees of the memory while a buffer of it is held.
struct exported {
  std::vector<Py_ssize_t> lens, strides;
  char format[2];
};

// The type as numpy sees it: what it has no word for is unsigned integers of that size.
char visible_letter(dtype type) {
  if (const char letter = letter_of(type)) return letter;
  return size_of(type) == 1 ? 'B' : 'H';
}

void check_visible(const held_tensor& t) {
  if (is_object(t.value.get_shape().type))
    throw py::buffer_error("elements of an array of " + std::string(to_string(t.value.get_shape().type)) +
                           " have no memory that others can read; use tolist()");
  if (!dlpack::is_host(t.where)) throw py::buffer_error("an array in a device's memory; use DLPack");
}

std::byte* data_of(const held_tensor& t) {
  alignas(16) static std::byte nothing[16];
  auto* const data = const_cast<std::byte*>(t.value.data());
  return data ? data : nothing;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    const held_tensor t = own_array(self).value();
    check_visible(t);
    const shape& s = t.value.get_shape();
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && t.read_only)
      throw py::buffer_error("the array's memory is read-only");
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !s.standard())
      throw py::buffer_error("the array is not contiguous");
    auto out = std::make_unique<exported>();
    const auto item = static_cast<Py_ssize_t>(size_of(s.type));
    const dims steps = s.element_strides();
    for (std::size_t i = 0; i < s.rank(); ++i) {
      out->lens.push_back(s.lens[i].value());
      out->strides.push_back(steps[i].value() * item);
    }
    out->format[0] = visible_letter(s.type);
    out->format[1] = '\0';
    view->buf = data_of(t);
    view->len = s.bytes().value();
    view->readonly = t.read_only;
    view->itemsize = item;
    view->format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? out->format : nullptr;
    view->ndim = static_cast<int>(s.rank());
    view->shape = (flags & PyBUF_ND) == PyBUF_ND ? out->lens.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? out->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = out.release();
    view->obj = py::handle(self).inc_ref().ptr();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) noexcept { delete static_cast<exported*>(view->internal); }

py::dict interface_of(const held_tensor& t) {
  check_visible(t);
  const shape& s = t.value.get_shape();
  const auto item = static_cast<std::int64_t>(size_of(s.type));
  const char kind = is_float(s.type) && letter_of(s.type)            ? 'f'
                    : s.type == dtype::boolean                       ? 'b'
                    : is_signed_integer(s.type) && letter_of(s.type) ? 'i'
                                                                     : 'u';
  py::dict out;
  out["version"] = 3;
  py::tuple lens(s.rank());
  for (std::size_t i = 0; i < s.rank(); ++i) lens[i] = s.lens[i].value();
  out["shape"] = lens;
  out["typestr"] = std::string(item == 1 ? "|" : "<") + kind + std::to_string(item);
  out["data"] = py::make_tuple(reinterpret_cast<std::uintptr_t>(data_of(t)), t.read_only);
  if (!s.standard()) {
    py::tuple strides(s.rank());
    for (std::size_t i = 0; i < s.rank(); ++i) strides[i] = s.strides[i].value() * item;
    out["strides"] = strides;
  }
  return out;
}

}  // namespace

py::custom_type_setup array_slots() {
  return py::custom_type_setup([](PyHeapTypeObject* type) {
    type->ht_type.tp_as_buffer = &type->as_buffer;
    type->as_buffer.bf_getbuffer = get_buffer;
    type->as_buffer.bf_releasebuffer = release_buffer;
  });
}

void bind_array_protocols(py::handle type) {
  const py::object property = py::module_::import("builtins").attr("property");
  type.attr("__array_interface__") =
      property(py::cpp_function([](const py::object& self) { return interface_of(own_array(self).value()); }));
  type.attr("__dlpack__") = py::cpp_function(
      [](const py::object& self, const py::object&, const py::object& max_version, const py::object& dl_device,
         const py::object& copy) { return send_capsule(own_array(self).value(), max_version, dl_device, copy); },
      py::name("__dlpack__"), py::is_method(type), py::kw_only(), py::arg("stream") = py::none(),
      py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(), py::arg("copy") = py::none(),
      "A capsule of DLPack over the same memory.");
  type.attr("__dlpack_device__") = py::cpp_function(
      [](const py::object& self) {
        const dlpack::device where = own_array(self).value().where;
        return py::make_tuple(static_cast<int>(where.type), where.id);
      },
      py::name("__dlpack_device__"), py::is_method(type), "DLPack's kind and number of the device.");
}

}  // namespace kiln::python
