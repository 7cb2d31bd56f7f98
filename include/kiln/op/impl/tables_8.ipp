#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<8>() {
  return slice_tables<8>();
}

}  // namespace kiln::detail
