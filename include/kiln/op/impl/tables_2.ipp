#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<2>() {
  return slice_tables<2>();
}

}  // namespace kiln::detail
