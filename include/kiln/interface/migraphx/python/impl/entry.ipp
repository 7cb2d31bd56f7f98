#include "kiln/interface/migraphx/python/impl/bind.hpp"
#include "kiln/version.hpp"

PYBIND11_MODULE(_migraphx, m) {
  using namespace kiln::migraphx::python;
  m.doc() = "The compiled half of kiln in role of migraphx.";
  m.attr("__name__") = "migraphx";  // where its classes say that they are
  bind_error(m);
  bind_shape(m);
  bind_argument(m);
  bind_operation(m);
  bind_module(m);
  bind_program(m);
  bind_functions(m);
  bind_device(m);
  m.attr("__version__") = std::to_string(KILN_VERSION_MAJOR) + "." + std::to_string(KILN_VERSION_MINOR) + "." +
                          std::to_string(KILN_VERSION_PATCH);
  m.attr("__name__") = "migraphx._migraphx";
}
