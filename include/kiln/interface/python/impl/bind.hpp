#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/graph/module.hpp"
#include "kiln/interface/python_arrays/bind.hpp"

// The module kiln._kiln: every unit binds one subject; the package around it is in ../kiln.
namespace kiln::python {

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
void bind_quantize(py::module_& m);

/// Extents from numbers, `Dim`s and names of symbols.
dims dims_of_object(py::handle object);
/// A dimension from a number, a `Dim` or the name of a symbol.
dimension dimension_of_object(py::handle object);
/// A dimension as Python sees it: an int or a `Dim`.
py::object object_of_dimension(dimension d);
/// Dims as a tuple of such.
py::tuple object_of_dims(const dims& lens);

}  // namespace kiln::python
