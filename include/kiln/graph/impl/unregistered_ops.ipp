#include "kiln/graph/impl/unregistered_ops.hpp"

#include "kiln/graph/operation.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/quant/integer_convolution.hpp"

namespace kiln::detail {
namespace {

template <class... Ops> const op_table* find_among(type_list<Ops...>, std::string_view name) {
  for (const op_table* table : {&table_of<Ops>()...})
    if (table->name == name) return table;
  return nullptr;
}

}  // namespace

const op_table* find_unregistered(std::string_view name) {
  if (const op_table* table = find_among(more_ops{}, name)) return table;
  return find_among(type_list<op::integer_dot, op::integer_convolution>{}, name);
}

}  // namespace kiln::detail
