#pragma once
#include "kiln/interface/python_arrays/bind.hpp"

namespace kiln::python {

/// Sets Python's error indicator to an error of kiln's classes, `of_argument` where the cause is what the caller gave,
/// with the attributes `code`, `message`, `op`, `instruction`, `place`, `expected` and `found`.
void set_error_of_type(py::handle general, py::handle of_argument, const error& e);

}  // namespace kiln::python
