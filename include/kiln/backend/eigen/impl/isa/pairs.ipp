#include "kiln/backend/eigen/impl/isa/pairs.hpp"

#include "kiln/kernel/pointwise/pair_rows.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::eigen {
namespace {

template <class T, class Op> constexpr pair_function pair_of() {
  if constexpr (kernels::is_pair_of_rows<Op, T>())
    return kernels::row_pair_loop<Op, T>::run;
  else
    return nullptr;
}

// Pointwise ops come first in the registry.
template <class T, class Indices = std::make_index_sequence<pointwise_ops::size>> struct pairs;
template <class T, std::size_t... I> struct pairs<T, std::index_sequence<I...>> {
  static constexpr pair_function of[] = {pair_of<T, default_registry::at<I>>()...};
};

}  // namespace

pair_function find_pair(std::size_t op, dtype type) {
  if (op >= pointwise_ops::size) return nullptr;
  switch (type) {
    case dtype::f32: return pairs<float>::of[op];
    case dtype::i64: return pairs<std::int64_t>::of[op];
    case dtype::i32: return pairs<std::int32_t>::of[op];
    case dtype::u8: return pairs<std::uint8_t>::of[op];
    case dtype::boolean: return pairs<bool>::of[op];
    default: return nullptr;
  }
}

}  // namespace kiln::eigen
