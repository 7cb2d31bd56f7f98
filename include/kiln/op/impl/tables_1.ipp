#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<1>() {
  return slice_tables<1>();
}

}  // namespace kiln::detail
