#pragma once
#include "kiln/op/table.hpp"

namespace kiln::detail {

/// The table of an op of kiln's own beside the default registry, as passes and builders put them into programs; null
/// where there is none of that name.
const op_table* find_unregistered(std::string_view name);

}  // namespace kiln::detail
