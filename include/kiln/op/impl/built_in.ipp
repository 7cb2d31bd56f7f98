#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

namespace {

constexpr std::size_t slices = 10;
static_assert(default_registry::size <= slices * ops_in_slice, "add tables_<n>.ipp and count it here");

const op_table* slice(std::size_t i) {
  static const op_table* const all[slices] = {
      built_in_slice<0>(), built_in_slice<1>(), built_in_slice<2>(), built_in_slice<3>(), built_in_slice<4>(),
      built_in_slice<5>(), built_in_slice<6>(), built_in_slice<7>(), built_in_slice<8>(), built_in_slice<9>()};
  return all[i];
}

}  // namespace

const op_table& built_in_table(std::size_t index) { return slice(index / ops_in_slice)[index % ops_in_slice]; }

const op_table* find_built_in(std::string_view name) {
  const std::size_t i = default_registry::find(name);
  return i == default_registry::size ? nullptr : &built_in_table(i);
}

}  // namespace kiln::detail
