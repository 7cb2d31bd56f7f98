#include "kiln/interface/migraphx/device_memory.hpp"
#include "kiln/interface/migraphx/python/impl/bind.hpp"

namespace kiln::migraphx::python {

void bind_device(py::module_& m) {
  m.def(
      "allocate_gpu",
      [](const shape& s, bool host) {
        return held_argument{allocate_gpu(s, host), {}, false, !host};
      },
      py::arg("s"), py::arg("host") = false, "Uninitialized memory of the GPU.");
  m.def(
      "to_gpu",
      [](const py::object& arg, bool host) {
        const held_argument from = argument_of_object(arg);
        const py::gil_scoped_release released;
        return held_argument{to_gpu(from.value, host), {}, false, !host};
      },
      py::arg("arg"), py::arg("host") = false, "A copy in the GPU's memory.");
  m.def(
      "from_gpu",
      [](const held_argument& arg) {
        const py::gil_scoped_release released;
        return held_argument{from_gpu(arg.value)};
      },
      py::arg("arg"), "A copy in the host's memory.");
  m.def("gpu_sync", &gpu_sync, py::call_guard<py::gil_scoped_release>(),
        "Returns when the GPU has done the work of run_async().");
}

}  // namespace kiln::migraphx::python
