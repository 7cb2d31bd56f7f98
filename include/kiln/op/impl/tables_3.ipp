#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<3>() {
  return slice_tables<3>();
}

}  // namespace kiln::detail
