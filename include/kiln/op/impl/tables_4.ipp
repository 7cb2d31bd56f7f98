#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<4>() {
  return slice_tables<4>();
}

}  // namespace kiln::detail
