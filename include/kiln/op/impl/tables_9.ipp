#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<9>() {
  return slice_tables<9>();
}

}  // namespace kiln::detail
