#include "kiln/graph/impl/own_ops.hpp"

#include <array>

#include "kiln/graph/operation.hpp"
#include "kiln/op/dynamic/bind_dims.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/couple_probabilities.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/map.hpp"
#include "kiln/op/dynamic/optional_rank.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/dynamic/sequence.hpp"
#include "kiln/op/dynamic/strings.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/quant/centered_dot.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
#include "kiln/op/quant/integer_convolution.hpp"
#include "kiln/op/quant/integer_dot.hpp"
#include "kiln/op/quant/zero_point_sums.hpp"

namespace kiln::detail {
namespace {

// Of importers and passes, beside `more_ops`.
using made_ops =
    type_list<op::bind_dims, op::branch, op::centered_dot, op::compress, op::concat_strings, op::couple_probabilities,
              op::dynamic_quantize_linear, op::equal_strings, op::integer_convolution, op::integer_dot,
              op::join_sequence, op::loop, op::make_optional, op::make_sequence, op::map_row, op::map_values,
              op::match_strings, op::non_max_suppression, op::nonzero, op::normalize_strings, op::optional_get,
              op::optional_has, op::optional_rank, op::print_numbers, op::read_numbers, op::select_objects,
              op::sequence_at, op::sequence_erase, op::sequence_insert, op::sequence_length, op::split_sequence,
              op::split_strings, op::unique, op::zero_point_sums, op::zip_maps>;

template <class... Ops> std::array<const op_table*, sizeof...(Ops)> tables_of(type_list<Ops...>) {
  return {&table_of<Ops>()...};
}
const op_table* find_in(std::span<const op_table* const> tables, std::string_view name) {
  for (const op_table* t : tables)
    if (t->name == name) return t;
  return nullptr;
}

}  // namespace

const op_table* find_own_op(std::string_view name) {
  if (const op_table* t = find_built_in(name)) return t;
  static const auto more = tables_of(more_ops{});
  static const auto made = tables_of(made_ops{});
  const op_table* const t = find_in(more, name);
  return t ? t : find_in(made, name);
}

}  // namespace kiln::detail
