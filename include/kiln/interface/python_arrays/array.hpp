#pragma once
#include "kiln/interface/python_arrays/bind.hpp"

namespace kiln::python {

/// A Python object's elements where they are, and what keeps them there.
class borrowed_array {
 public:
  borrowed_array() = default;
  borrowed_array(const borrowed_array&) = delete;
  borrowed_array& operator=(const borrowed_array&) = delete;
  borrowed_array(borrowed_array&& other) noexcept
      : value(std::move(other.value)),
        where(other.where),
        read_only(other.read_only),
        view_(other.view_),
        kept_(std::move(other.kept_)) {
    other.view_.obj = nullptr;
  }
  ~borrowed_array() { clear(); }

  argument value;
  dlpack::device where;
  bool read_only = false;

  /// Reads an object of the module's own class, what has the buffer protocol, DLPack or __array_interface__, or numbers
  /// and nested lists. `wanted`: the dtype that lists are read as, and that unsigned integers of its size are taken for
  /// where Python has no such type (bf16, float8). Elements that kiln can't read where they are (unaligned ones) are
  /// copied.
  void read(py::handle object, std::optional<dtype> wanted);
  /// Memory to be written: only what can be written where it is.
  void read_writable(py::handle object, std::optional<dtype> wanted);
  /// The argument with a share in what keeps its elements, for use at any time and in any thread.
  argument shared();
  /// An argument within this one's memory, with a share in what keeps that.
  argument keep(argument part) const;
  void clear() {
    value = argument();
    if (view_.obj) PyBuffer_Release(&view_);
    view_.obj = nullptr;
    kept_ = py::object();
  }

 private:
  bool read_tensor(py::handle object);
  bool read_buffer(py::handle object, std::optional<dtype> wanted);
  bool read_dlpack(py::handle object);
  bool read_interface(py::handle object, std::optional<dtype> wanted);
  void take(void* data, dtype type, std::size_t item, std::size_t rank, const Py_ssize_t* lens,
            const Py_ssize_t* strides);
  Py_buffer view_{};
  py::object kept_;
};

/// Numbers, bools, strings or complex numbers, alone or in nested lists of equal lengths.
argument argument_of_list(py::handle object, std::optional<dtype> wanted);
/// The elements as Python's objects in nested lists; a single one at rank 0.
py::object list_of_argument(const argument& a);

/// The type of elements in buffers and in __array_interface__: the letter of the module struct; 0: there is none.
char letter_of(dtype type);

/// The buffer protocol, for the constructor of the module's own class. What Python has no word for (bf16, float8) shows
/// as unsigned integers of that size.
py::custom_type_setup array_slots();
/// Gives that class `__array_interface__`, `__dlpack__` and `__dlpack_device__`.
void bind_array_protocols(py::handle type);

/// Reads a capsule of DLPack, which is then used up.
dlpack::received receive_capsule(py::handle capsule);
/// Asks an object for its capsule, or takes one.
dlpack::received receive_from(py::handle object);
/// What `__dlpack__` of an array gives.
py::object send_capsule(const held_tensor& t, const py::object& max_version, const py::object& dl_device,
                        const py::object& copy);

}  // namespace kiln::python
