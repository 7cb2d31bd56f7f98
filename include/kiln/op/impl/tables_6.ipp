#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<6>() {
  return slice_tables<6>();
}

}  // namespace kiln::detail
