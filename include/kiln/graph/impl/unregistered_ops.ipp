#include "kiln/graph/impl/unregistered_ops.hpp"

#include "kiln/graph/operation.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/integer_convolution.hpp"

namespace kiln::detail {

const op_table* find_unregistered(std::string_view name) {
  for (const op_table* table : {&table_of<op::quantize_linear>(), &table_of<op::dequantize_linear>(),
                                &table_of<op::integer_dot>(), &table_of<op::integer_convolution>()})
    if (table->name == name) return table;
  return nullptr;
}

}  // namespace kiln::detail
