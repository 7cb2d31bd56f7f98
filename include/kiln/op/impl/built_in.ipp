#include <array>

#include "kiln/op/impl/table_slice.hpp"

namespace kiln::detail {

namespace {

// As many as CMakeLists.txt generates units of.
constexpr std::size_t slices = 10;
static_assert(default_registry::size <= slices * ops_in_slice, "raise the number of op_table_slice units in CMake");

const op_table* slice(std::size_t i) {
  static const auto all = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{op_table_slice<I>::tables()...};
  }
  (std::make_index_sequence<slices>{});
  return all[i];
}

}  // namespace

const op_table& built_in_table(std::size_t index) { return slice(index / ops_in_slice)[index % ops_in_slice]; }

const op_table* find_built_in(std::string_view name) {
  const std::size_t i = default_registry::find(name);
  return i == default_registry::size ? nullptr : &built_in_table(i);
}

}  // namespace kiln::detail
