#include "kiln/interface/python/impl/bind.hpp"
#include "kiln/interface/python_arrays/array.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::python {
namespace {

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

std::optional<held_tensor> own_array(py::handle object) {
  if (!py::isinstance<held_tensor>(object)) return std::nullopt;
  return py::cast<const held_tensor&>(object);
}
py::object object_of_array(held_tensor t) { return py::cast(std::move(t)); }

void bind_tensor(py::module_& m) {
  py::class_<held_tensor> tensor(m, "Tensor", array_slots(),
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
  bind_array_protocols(tensor);
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
