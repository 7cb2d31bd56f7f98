#pragma once
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "kiln/core/argument.hpp"
#include "kiln/graph/module.hpp"
#include "kiln/runtime/dlpack.hpp"

// The module kiln._kiln: every unit binds one subject; the package around it is in ../kiln.
namespace kiln::python {

namespace py = pybind11;

/// What Python calls a Tensor.
struct held_tensor {
  argument value;
  dlpack::device where;
  bool read_only = false;
};

/// What Python calls a Program.
struct held_program {
  program graph;
  std::vector<std::string> remarks;
};

void bind_error(py::module_& m);
void bind_shape(py::module_& m);
void bind_tensor(py::module_& m);
void bind_builder(py::module_& m);
void bind_ops(py::module_& m);
void bind_custom_op(py::module_& m);
void bind_program(py::module_& m);
void bind_executable(py::module_& m);

/// Sets Python's error indicator from the exception that is being handled.
void set_python_error() noexcept;

/// A kiln dtype from its name, numpy's name of it, or a numpy dtype or scalar type.
dtype dtype_of_object(py::handle object);
/// Extents from numbers, `Dim`s and names of symbols.
dims dims_of_object(py::handle object);
/// A dimension from a number, a `Dim` or the name of a symbol.
dimension dimension_of_object(py::handle object);
/// A dimension as Python sees it: an int or a `Dim`.
py::object object_of_dimension(dimension d);
/// Dims as a tuple of such.
py::tuple object_of_dims(const dims& lens);
/// A file's name from str or os.PathLike.
std::string path_of_object(py::handle object);

}  // namespace kiln::python
