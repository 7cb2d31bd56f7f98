#include "kiln/backend/eigen/typed_tiles.hpp"

#include "kiln/backend/eigen/impl/isa/pairs.hpp"
#include "kiln/kernel/pointwise/typed_tile.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::eigen {
namespace {

template <class Op, class T> constexpr bool serves() {
  constexpr dtype_set types = detail::types_of<Op>();
  return types.contains(dtype_of<T>);
}

template <class T, class Op> constexpr tile_function tile_of() {
  if constexpr (kind_of<Op>() == op_kind::pointwise && serves<Op, T>())
    return kernels::typed_tile<Op, T>;
  else
    return nullptr;
}
template <class T, class Op> constexpr typed_fold_function fold_of() {
  if constexpr (kind_of<Op>() == op_kind::reduction && serves<Op, T>())
    return kernels::typed_fold<Op, T>;
  else
    return nullptr;
}

constexpr std::size_t ops = pointwise_ops::size + reduce_ops::size;  // come first in the registry
template <class T, class Indices = std::make_index_sequence<ops>> struct arrays;
template <class T, std::size_t... I> struct arrays<T, std::index_sequence<I...>> {
  static constexpr tile_function tiles[] = {tile_of<T, default_registry::at<I>>()...};
  static constexpr typed_fold_function folds[] = {fold_of<T, default_registry::at<I>>()...};
};

// Calls `f` with the element type, where there are tiles of it.
template <class F> auto with_type(dtype t, F&& f) -> decltype(f(type_tag<double>{})) {
  switch (t) {
    case dtype::f64: return f(type_tag<double>{});
    case dtype::i64: return f(type_tag<std::int64_t>{});
    case dtype::i32: return f(type_tag<std::int32_t>{});
    case dtype::i16: return f(type_tag<std::int16_t>{});
    case dtype::i8: return f(type_tag<std::int8_t>{});
    case dtype::u64: return f(type_tag<std::uint64_t>{});
    case dtype::u32: return f(type_tag<std::uint32_t>{});
    case dtype::u16: return f(type_tag<std::uint16_t>{});
    case dtype::u8: return f(type_tag<std::uint8_t>{});
    case dtype::boolean: return f(type_tag<bool>{});
    default: return nullptr;
  }
}

tile_function tile(std::size_t op, dtype type) {
  return op < ops ? with_type(type, [&]<class T>(type_tag<T>) { return arrays<T>::tiles[op]; }) : nullptr;
}
typed_fold_function fold(std::size_t op, dtype type) {
  return op < ops ? with_type(type, [&]<class T>(type_tag<T>) { return arrays<T>::folds[op]; }) : nullptr;
}
convert_function convert(dtype from, dtype to) {
  const auto with_any = [](dtype t, auto&& f) {
    switch (t) {
      case dtype::f32: return f(type_tag<float>{});
      case dtype::f16: return f(type_tag<half>{});
      case dtype::bf16: return f(type_tag<bfloat16>{});
      default: return with_type(t, f);
    }
  };
  return with_any(from, [&]<class From>(type_tag<From>) {
    return with_any(to, []<class To>(type_tag<To>) -> convert_function { return kernels::converted_tile<From, To>; });
  });
}
convert_function round(dtype to) {
  return to == dtype::f16    ? kernels::rounded_tile<half>
         : to == dtype::bf16 ? kernels::rounded_tile<bfloat16>
                             : static_cast<convert_function>(nullptr);
}
repeat_function repeat(std::size_t width) {
  switch (width) {
    case 1: return kernels::repeated_tile<std::uint8_t>;
    case 2: return kernels::repeated_tile<std::uint16_t>;
    case 4: return kernels::repeated_tile<std::uint32_t>;
    case 8: return kernels::repeated_tile<std::uint64_t>;
    default: return nullptr;
  }
}
spread_function spread(std::size_t width) {
  switch (width) {
    case 1: return kernels::spread_elements<std::uint8_t>;
    case 2: return kernels::spread_elements<std::uint16_t>;
    case 4: return kernels::spread_elements<std::uint32_t>;
    case 8: return kernels::spread_elements<std::uint64_t>;
    default: return nullptr;
  }
}

constexpr typed_tile_table table{.tile = tile,
                                 .fold = fold,
                                 .convert = convert,
                                 .round = round,
                                 .repeat = repeat,
                                 .spread = spread,
                                 .pair = find_pair};

}  // namespace

extern "C" [[gnu::visibility("default")]] const typed_tile_table* kiln_eigen_typed_tiles() { return &table; }

}  // namespace kiln::eigen
