#include "kiln/interface/python/impl/array.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::python {
namespace {

// What Python sees of a Tensor's memory while a buffer of it is held.
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
    throw py::buffer_error("elements of a Tensor of " + std::string(to_string(t.value.get_shape().type)) +
                           " have no memory that others can read; use tolist()");
  if (!dlpack::is_host(t.where)) throw py::buffer_error("a Tensor in a device's memory; use DLPack");
}

std::byte* data_of(const held_tensor& t) {
  alignas(16) static std::byte nothing[16];
  auto* const data = const_cast<std::byte*>(t.value.data());
  return data ? data : nothing;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    const auto& t = py::cast<const held_tensor&>(py::handle(self));
    check_visible(t);
    const shape& s = t.value.get_shape();
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && t.read_only)
      throw py::buffer_error("the Tensor's memory is read-only");
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !s.standard())
      throw py::buffer_error("the Tensor is not contiguous");
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
  out["shape"] = object_of_dims(s.lens);
  out["typestr"] = std::string(item == 1 ? "|" : "<") + kind + std::to_string(item);
  out["data"] = py::make_tuple(reinterpret_cast<std::uintptr_t>(data_of(t)), t.read_only);
  if (!s.standard()) {
    py::tuple strides(s.rank());
    for (std::size_t i = 0; i < s.rank(); ++i) strides[i] = s.strides[i].value() * item;
    out["strides"] = strides;
  }
  return out;
}

std::optional<dtype> wanted_of(const py::object& type) {
  return type.is_none() ? std::nullopt : std::optional(dtype_of_object(type));
}

held_tensor tensor_of_object(const py::object& object, const py::object& type) {
  const std::optional<dtype> wanted = wanted_of(type);
  borrowed_array a;
  a.read(object, wanted);
  const dtype found = a.value.get_shape().type;
  if (wanted && *wanted != found) raise(fault::of(errc::invalid_argument, "dtype of the array", *wanted, found));
  const dlpack::device where = a.where;
  const bool read_only = a.read_only;
  return {a.shared(), where, read_only};
}

std::string text_of(const held_tensor& t) {
  const shape& s = t.value.get_shape();
  std::string out = "kiln.Tensor(" + to_string(s);
  if (dlpack::is_host(t.where) && t.value.elements() <= 64)
    out += ", " + py::cast<std::string>(py::repr(list_of_argument(t.value)));
  return out + ")";
}

}  // namespace

void bind_tensor(py::module_& m) {
  py::class_<held_tensor> tensor(m, "Tensor", py::custom_type_setup([](PyHeapTypeObject* type) {
                                   type->ht_type.tp_as_buffer = &type->as_buffer;
                                   type->as_buffer.bf_getbuffer = get_buffer;
                                   type->as_buffer.bf_releasebuffer = release_buffer;
                                 }),
                                 "Numbers, or other elements, with a shape and a dtype, in memory that others read "
                                 "without a copy: numpy.asarray(t), numpy.from_dlpack(t), torch.from_dlpack(t). Where "
                                 "Python has no such dtype (bf16, float8), numpy sees unsigned integers of its size.");
  tensor.def_property_readonly(
      "shape", [](const held_tensor& t) { return object_of_dims(t.value.get_shape().lens); }, "The extents.");
  tensor.def_property_readonly(
      "strides", [](const held_tensor& t) { return object_of_dims(t.value.get_shape().element_strides()); },
      "Elements from one index to the next, of each dim.");
  tensor.def_property_readonly(
      "dtype", [](const held_tensor& t) { return std::string(to_string(t.value.get_shape().type)); },
      "The name of the elements' type: \"f32\", \"bf16\", \"string\".");
  tensor.def_property_readonly(
      "data_ptr", [](const held_tensor& t) { return reinterpret_cast<std::uintptr_t>(t.value.data()); },
      "The address of the first element.");
  tensor.def_property_readonly(
      "read_only", [](const held_tensor& t) { return t.read_only; }, "Whether the memory is not to be written.");
  tensor.def_property_readonly(
      "nbytes", [](const held_tensor& t) { return t.value.get_shape().bytes().value(); }, "Bytes of all elements.");
  tensor.def_property_readonly("__array_interface__", interface_of);
  tensor.def(
      "numpy", [](const py::object& self) { return py::module_::import("numpy").attr("asarray")(self); },
      "A numpy array over the same memory.");
  tensor.def(
      "tolist", [](const held_tensor& t) { return list_of_argument(t.value); },
      "The elements as Python's objects, in nested lists; of a sequence its items, of a map a dict.");
  tensor.def(
      "item",
      [](const held_tensor& t) {
        if (t.value.elements() != 1)
          raise(fault::of(errc::invalid_argument, "elements of a Tensor whose only one is asked for", 1,
                          t.value.elements()));
        argument dense = t.value.contiguous();
        return list_of_argument(argument(shape(dense.get_shape().type, {}), dense.data()));
      },
      "The only element.");
  tensor.def(
      "copy",
      [](const held_tensor& t) {
        return held_tensor{t.value.copy(), {}, false};
      },
      "A row-major Tensor with memory of its own.");
  tensor.def("__len__", [](const held_tensor& t) {
    const dims& lens = t.value.get_shape().lens;
    if (lens.empty()) throw py::type_error("a Tensor of rank 0 has no len()");
    return lens[0].value();
  });
  tensor.def("__repr__", text_of);
  tensor.def(
      "__dlpack__",
      [](const held_tensor& t, const py::object&, const py::object& max_version, const py::object& dl_device,
         const py::object& copy) { return send_capsule(t, max_version, dl_device, copy); },
      py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
      py::arg("dl_device") = py::none(), py::arg("copy") = py::none(), "A capsule of DLPack over the same memory.");
  tensor.def(
      "__dlpack_device__",
      [](const held_tensor& t) { return py::make_tuple(static_cast<int>(t.where.type), t.where.id); },
      "DLPack's kind and number of the device.");
  m.def("tensor", tensor_of_object, py::arg("data"), py::arg("dtype") = py::none(),
        "A Tensor over the memory of an array, where it has the buffer protocol, DLPack or __array_interface__; or of "
        "numbers, bools or strings in nested lists. `dtype` says what lists are read as, and \"bf16\" or a float8 what "
        "unsigned integers of that size mean.");
  m.def(
      "from_dlpack",
      [](const py::object& object) {
        dlpack::received r = receive_from(object);
        return held_tensor{std::move(r.value), r.where, r.read_only};
      },
      py::arg("object"), "A Tensor over the memory of an object with __dlpack__, or of a capsule.");
  m.def(
      "read_tensor",
      [](const py::object& path) {
        const std::string name = path_of_object(path);
        const py::gil_scoped_release released;
        return held_tensor{onnx::read_tensor(name).value, {}, false};
      },
      py::arg("path"), "A Tensor from a file with one ONNX TensorProto (.pb).");
  m.def(
      "write_tensor",
      [](const py::object& path, const py::object& value, const std::string& name) {
        onnx::write_tensor(path_of_object(path), tensor_of_object(value, py::none()).value, name);
      },
      py::arg("path"), py::arg("value"), py::arg("name") = "", "Writes an array as an ONNX TensorProto (.pb).");
}

}  // namespace kiln::python
