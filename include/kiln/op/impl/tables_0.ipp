#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<0>() {
  return slice_tables<0>();
}

}  // namespace kiln::detail
