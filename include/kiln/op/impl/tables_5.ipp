#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

template <>
const op_table* built_in_slice<5>() {
  return slice_tables<5>();
}

}  // namespace kiln::detail
