#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<7>() {
  return slice_tables<7>();
}

}  // namespace kiln::detail
