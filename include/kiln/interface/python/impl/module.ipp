#include "kiln/interface/python/impl/bind.hpp"
#include "kiln/version.hpp"

PYBIND11_MODULE(_kiln, m) {
  using namespace kiln::python;
  m.doc() = "The compiled half of the package kiln.";
  m.attr("__version__") = std::to_string(KILN_VERSION_MAJOR) + "." + std::to_string(KILN_VERSION_MINOR) + "." +
                          std::to_string(KILN_VERSION_PATCH);
  bind_error(m);
  bind_shape(m);
  bind_tensor(m);
  bind_builder(m);
  bind_ops(m);
  bind_custom_op(m);
  bind_program(m);
  bind_executable(m);
  bind_quantize(m);
}
