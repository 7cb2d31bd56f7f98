#include "kiln/graph/impl/own_ops.hpp"

#include <array>
#include <span>

#include "kiln/graph/operation.hpp"
#include "kiln/op/dynamic/bind_dims.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/couple_probabilities.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/map.hpp"
#include "kiln/op/dynamic/optional_rank.hpp"
#include "kiln/op/dynamic/progression.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/dynamic/sequence.hpp"
#include "kiln/op/dynamic/slice_at.hpp"
#include "kiln/op/dynamic/strings.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/quant/centered_dot.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
#include "kiln/op/quant/float8_dot.hpp"
#include "kiln/op/quant/integer_convolution.hpp"
#include "kiln/op/quant/integer_dot.hpp"
#include "kiln/op/quant/zero_point_sums.hpp"

namespace kiln::detail {
namespace {

template <class... Ops> constexpr std::array<const op_table*, sizeof...(Ops)> tables_of(type_list<Ops...>) {
  return {&user_table<Ops>...};
}
constexpr auto own_tables = tables_of(own_ops{});

template <class... Ops> constexpr bool all_are_own(type_list<Ops...>) {
  return ((own_index<Ops> < own_ops::size) && ...);
}
static_assert(all_are_own(more_ops{}), "list them in op/own_ops.hpp too");

// Ops that so few units name that each generates their tables as a user's: all units would read `own_ops` again.
constexpr auto rare_tables = tables_of(type_list<op::float8_dot, op::mel_weights>{});

}  // namespace

const op_table* find_own_op(std::string_view name) {
  if (const op_table* t = find_built_in(name)) return t;
  for (const std::span<const op_table* const> tables : {std::span<const op_table* const>(own_tables), {rare_tables}})
    for (const op_table* t : tables)
      if (t->name == name) return t;
  return nullptr;
}

const op_table& own_table(std::size_t index) { return *own_tables[index]; }

}  // namespace kiln::detail
