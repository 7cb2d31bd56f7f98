#pragma once
#include <pybind11/operators.h>

#include <memory>
#include <shared_mutex>

#include "kiln/interface/migraphx/program.hpp"
#include "kiln/interface/python_arrays/array.hpp"

// The module migraphx._migraphx: every unit binds one subject; the package around it is in ../migraphx.
namespace kiln::migraphx::python {

namespace py = pybind11;

/// What Python calls an argument.
struct held_argument {
  argument value;
  dlpack::device where{};  ///< by DLPack
  bool read_only = false;
  bool on_gpu = false;  ///< in memory of to_gpu() or allocate_gpu(), which is not for DLPack
};

/// What Python calls a program. Runs share it, whatever changes it has it alone; both without the interpreter's lock.
struct held_program {
  program graph;
  mutable std::shared_mutex use;
  held_program() = default;
  explicit held_program(program p) : graph(std::move(p)) {}
};
using program_handle = std::shared_ptr<held_program>;

/// Calls a function that reads, or one that changes, a program. Waiting for it leaves the interpreter's lock free:
/// whoever has the program may need that lock to give it back.
template <class F> auto reading(const held_program& p, F&& f) {
  const py::gil_scoped_release released;
  const std::shared_lock lock(p.use);
  return f();
}
template <class F> auto changing(held_program& p, F&& f) {
  const py::gil_scoped_release released;
  const std::unique_lock lock(p.use);
  return f();
}

/// What Python calls a module and an instruction_ref: both keep their program.
struct held_module {
  program_handle of;
  module* is = nullptr;
};
struct held_instruction {
  program_handle of;
  instruction_ref is = nullptr;
};

void bind_error(py::module_& m);
void bind_shape(py::module_& m);
void bind_argument(py::module_& m);
void bind_operation(py::module_& m);
void bind_module(py::module_& m);
void bind_program(py::module_& m);
void bind_functions(py::module_& m);
void bind_device(py::module_& m);

/// The error again, as one of a part: "parameter 'x': ...".
[[noreturn]] inline void raise_of(const std::string& part, const error& e) {
  std::string message = part + ": " + e.message();
  if (!e.expected().empty() || !e.found().empty()) message += ": expected " + e.expected() + ", found " + e.found();
  raise(e.code(), std::move(message));
}

/// An argument over the memory of an array, or of numbers in lists. `wanted`: see borrowed_array::read.
held_argument argument_of_object(py::handle object, std::optional<dtype> wanted = std::nullopt);
/// What the argument is as an array: one element of MIGraphX's has the extents {1}.
kiln::python::held_tensor array_of_argument(const held_argument& a);
/// Arguments by name: those that are arrays are read as the program's parameters.
parameter_map parameters_of_dict(const held_program& p, const py::dict& given);
/// Results that show a parameter's memory keep it.
py::list objects_of_results(std::vector<argument> results, const parameter_map& parameters);

/// Attributes as numbers, words, lists and dicts.
py::object object_of_attributes(const attributes& value);

/// A type from its name, its number or a member of shape.type_t.
type_t type_of_object(py::handle object);
/// Numbers from any sequence of integers.
std::vector<std::size_t> sizes_of_object(py::handle object);

}  // namespace kiln::migraphx::python
