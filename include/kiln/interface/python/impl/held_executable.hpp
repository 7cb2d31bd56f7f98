#pragma once
#include "kiln/interface/python/impl/bind.hpp"
#include "kiln/interface/python_arrays/array.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::python {

/// What one call needs, kept for the next one. Only touched with the interpreter's lock held, or by the run itself.
struct call_state {
  workspace memory;
  std::vector<borrowed_array> held;
  std::vector<argument> inputs, outputs;

  void clear() {
    held.clear();
    inputs.clear();
    outputs.clear();
  }
};

/// What Python calls an Executable: any number of threads may call it.
class held_executable {
 public:
  held_executable(executable e, bool on_device);

  executable compiled;
  bool has_device = false;
  std::vector<py::object> keys;         ///< names of the inputs, interned
  std::vector<py::object> output_keys;  ///< and of the outputs

  std::unique_ptr<call_state> take_state();
  void put_back(std::unique_ptr<call_state> state);

 private:
  std::vector<std::unique_ptr<call_state>> idle_;
};

/// A state of the executable for the length of a scope.
class lent_state {
 public:
  explicit lent_state(held_executable& of) : of_(of), state_(of.take_state()) {}
  lent_state(const lent_state&) = delete;
  lent_state& operator=(const lent_state&) = delete;
  ~lent_state() { of_.put_back(std::move(state_)); }
  call_state& operator*() { return *state_; }
  call_state* operator->() { return state_.get(); }

 private:
  held_executable& of_;
  std::unique_ptr<call_state> state_;
};

/// Reads the inputs of a call: positional ones in order, others by name.
void read_inputs(const held_executable& e, call_state& s, PyObject* positional, PyObject* named);
/// What `exe(x=...)` does: the slot tp_call.
PyObject* call_executable(PyObject* self, PyObject* positional, PyObject* named) noexcept;
/// The outputs of a run as Tensors.
py::tuple take_outputs(call_state& s);

}  // namespace kiln::python
