#pragma once
#include "kiln/op/table.hpp"

namespace kiln::detail {

/// The table of an op of op/quant/, which passes put into programs and no registry has; null where there is none.
const op_table* find_unregistered(std::string_view name);

}  // namespace kiln::detail
