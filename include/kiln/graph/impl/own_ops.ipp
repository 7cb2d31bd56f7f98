#include "kiln/graph/impl/own_ops.hpp"

#include <array>

#include "kiln/graph/impl/every_own_op.hpp"
#include "kiln/graph/operation.hpp"
namespace kiln::detail {
namespace {

template <class... Ops> constexpr std::array<const op_table*, sizeof...(Ops)> tables_of(type_list<Ops...>) {
  return {&user_table<Ops>...};
}
constexpr auto own_tables = tables_of(every_own_op{});

template <class... Ops> constexpr bool all_are_own(type_list<Ops...>) {
  return ((own_index<Ops> < own_ops::size) && ...);
}
static_assert(all_are_own(more_ops{}), "list them in op/own_ops.hpp too");

}  // namespace

const op_table* find_own_op(std::string_view name) {
  if (const op_table* t = find_built_in(name)) return t;
  for (const op_table* t : own_tables)
    if (t->name == name) return t;
  return nullptr;
}

const op_table& own_table(std::size_t index) { return *own_tables[index]; }

}  // namespace kiln::detail
