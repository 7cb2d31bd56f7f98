#pragma once
#include "kiln/interface/python/impl/bind.hpp"
#include "kiln/runtime/saved_program.hpp"

namespace kiln::python {

/// Loads programs that hold custom ops of this process.
load_options custom_load_options();

/// A named input or output as (name, dtype, shape).
py::tuple port_tuple(std::string_view name, const shape& type);

}  // namespace kiln::python
