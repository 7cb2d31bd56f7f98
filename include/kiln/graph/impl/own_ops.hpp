#pragma once
#include <string_view>

#include "kiln/op/table.hpp"

namespace kiln::detail {

/// The table of an op of kiln's own by its name: of the default registry, or one of the others that importers and
/// passes put into programs. Null for any other name.
const op_table* find_own_op(std::string_view name);

}  // namespace kiln::detail
