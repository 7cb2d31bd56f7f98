#pragma once
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#include "kiln/core/argument.hpp"
#include "kiln/core/error.hpp"
#include "kiln/runtime/dlpack.hpp"

// What kiln's Python modules share: how they read others' arrays where they are, and show their own.
namespace kiln::python {

namespace py = pybind11;

/// An array, and where its elements are.
struct held_tensor {
  argument value;
  dlpack::device where;
  bool read_only = false;
};

// Each module says these of itself.
/// The array in an object of the module's own class; nothing for other objects.
std::optional<held_tensor> own_array(py::handle object);
/// An object of that class.
py::object object_of_array(held_tensor t);
/// Sets Python's error indicator.
void set_python_error_of(const error& e);

/// Sets Python's error indicator from the exception that is being handled.
void set_python_error() noexcept;

/// A kiln dtype from its name, numpy's name of it, or a numpy dtype or scalar type.
dtype dtype_of_object(py::handle object);
/// A file's name from str or os.PathLike.
std::string path_of_object(py::handle object);

}  // namespace kiln::python
