#include "kiln/runtime/dlpack.hpp"

#include "kiln/interface/python_arrays/array.hpp"

namespace kiln::python {
namespace {

constexpr const char* plain_name = "dltensor";
constexpr const char* versioned_name = "dltensor_versioned";

template <class Managed> dlpack::received receive_named(py::handle capsule, const char* name, const char* used) {
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!managed) throw py::error_already_set();
  dlpack::received out = dlpack::receive(managed);
  PyCapsule_SetName(capsule.ptr(), used);
  return out;
}

// Deletes what nobody took over.
template <class Managed> void drop(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

py::object capsule_of(const held_tensor& t, bool versioned) {
  PyObject* made = nullptr;
  if (versioned)
    made = PyCapsule_New(dlpack::send_versioned(t.value, t.where, t.read_only), versioned_name,
                         [](PyObject* c) { drop<dlpack::managed_tensor_versioned>(c, versioned_name); });
  else
    made = PyCapsule_New(dlpack::send(t.value, t.where), plain_name,
                         [](PyObject* c) { drop<dlpack::managed_tensor>(c, plain_name); });
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

}  // namespace

dlpack::received receive_capsule(py::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), versioned_name))
    return receive_named<dlpack::managed_tensor_versioned>(capsule, versioned_name, "used_dltensor_versioned");
  if (PyCapsule_IsValid(capsule.ptr(), plain_name))
    return receive_named<dlpack::managed_tensor>(capsule, plain_name, "used_dltensor");
  raise(errc::invalid_argument,
        "a capsule of DLPack that nobody has taken yet: found " + py::cast<std::string>(py::repr(capsule)));
}

dlpack::received receive_from(py::handle object) {
  if (PyCapsule_CheckExact(object.ptr())) return receive_capsule(object);
  if (!py::hasattr(object, "__dlpack__"))
    raise(errc::invalid_argument,
          "an object with __dlpack__: found " + py::cast<std::string>(py::str(py::type::handle_of(object))));
  try {
    return receive_capsule(object.attr("__dlpack__")(py::arg("max_version") = py::make_tuple(1, 1)));
  } catch (py::error_already_set& e) {
    if (!e.matches(PyExc_TypeError)) throw;  // of before DLPack 1.0: it knows no versions
  }
  return receive_capsule(object.attr("__dlpack__")());
}

py::object send_capsule(const held_tensor& t, const py::object& max_version, const py::object& dl_device,
                        const py::object& copy) {
  const auto device = py::make_tuple(static_cast<int>(t.where.type), t.where.id);
  if (!dl_device.is_none() && !device.equal(dl_device)) throw py::buffer_error("an array stays on its device");
  const bool versioned = !max_version.is_none() && py::cast<int>(max_version[py::int_(0)]) >= 1;
  if (t.read_only && !versioned && (copy.is_none() || !py::cast<bool>(copy)))
    throw py::buffer_error("only DLPack 1.0 and later can say that memory is read-only; make a copy()");
  if (!copy.is_none() && py::cast<bool>(copy)) return capsule_of({t.value.copy(), t.where, false}, versioned);
  return capsule_of(t, versioned);
}

}  // namespace kiln::python
