#pragma once
#include "kiln/backend/eigen/double_pooling.hpp"
#include "kiln/backend/eigen/expanded_depthwise.hpp"
#include "kiln/backend/eigen/index.hpp"
#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/linear_algebra.hpp"
#include "kiln/backend/eigen/quantized.hpp"
#include "kiln/backend/eigen/recurrent.hpp"
#include "kiln/backend/eigen/reductions.hpp"
#include "kiln/backend/eigen/sampling.hpp"
#include "kiln/backend/eigen/stored_products.hpp"
#include "kiln/backend/eigen/typed_tiles.hpp"
#include "kiln/meta/reflect.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::eigen {

/// A hash of the layouts that a kernel library and its callers have to agree on.
class layout_hash {
 public:
  constexpr void add(std::uint64_t n) { hash_ = (hash_ ^ n) * 0x100000001b3u; }
  constexpr std::uint64_t value() const { return hash_; }

  /// Adds the sizes of a type and of all that it names: what it points to, and results and parameters of functions.
  template <class T> constexpr void add_type() {
    using plain = std::remove_cvref_t<T>;
    if constexpr (std::is_pointer_v<plain>)
      add(1), add_type<std::remove_pointer_t<plain>>();
    else if constexpr (std::is_member_pointer_v<plain>)
      add_member(static_cast<plain>(nullptr));
    else if constexpr (std::is_function_v<plain>)
      add_signature(static_cast<plain*>(nullptr));
    else if constexpr (!std::is_void_v<plain>)
      add(sizeof(plain));
  }
  /// Adds an aggregate and all of its fields.
  template <class T> constexpr void add_fields() {
    add(sizeof(T));
    [&]<std::size_t... I>(std::index_sequence<I...>) { (add_type<decltype(get_field<I>(std::declval<T&>()))>(), ...); }
    (std::make_index_sequence<field_count<T>>{});
  }

 private:
  template <class R, class... A> constexpr void add_signature(R (*)(A...)) {
    add(sizeof...(A)), add_type<R>(), (add_type<A>(), ...);
  }
  template <class R, class C, class... A> constexpr void add_member(R (C::*)(A...) const) {
    add(sizeof...(A)), add_type<R>(), (add_type<A>(), ...);
  }
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

/// What a kernel library and its callers have to agree on, as one number: sizes of all that the tables' functions take
/// and give, ops by index with their sizes, and the version of the kernels.
constexpr std::uint64_t isa_layout() {
  layout_hash hash;
  hash.add_fields<isa_table>();
  hash.add_fields<recurrent_table>();
  hash.add_fields<expanded_depthwise_table>();
  hash.add_fields<double_pooling_table>();
  hash.add_fields<index_table>();
  hash.add_fields<reduction_table>();
  hash.add_fields<sampling_table>();
  hash.add_fields<linear_algebra_table>();
  hash.add_fields<stored_product_table>();
  hash.add_fields<integer_table>();
  hash.add_fields<quantized_table>();
  hash.add_fields<typed_tile_table>();
  hash.add_fields<product_functions<double>>();
  hash.add_fields<product_functions<std::uint32_t>>();
  hash.add_fields<product_functions<std::uint64_t>>();
  // what is reached through objects that the tables' functions take or give
  hash.add_type<decltype(&conv_plan::scratch_floats)>();
  hash.add_type<decltype(&conv_plan::run)>();
  hash.add_type<decltype(&fourier_plan::scratch_bytes)>();
  hash.add_type<decltype(&fourier_plan::run)>();
  hash.add_fields<gemm_epilogue>();
  hash.add_fields<integer_epilogue>();
  hash.add_fields<kernels::element_indices>();
  hash.add_fields<kernels::slice_updates>();
  hash.add_fields<kernels::scan_problem>();
  hash.add_fields<kernels::row_pairs>();
  hash.add_fields<kernels::extreme_problem>();
  hash.add_fields<kernels::top_problem>();
  hash.add_fields<conv_epilogue>();
  hash.add_fields<expanded_depthwise>();
  hash.add_type<kernels::block_run>();
  hash.add_type<kernels::row_run>();
  hash.add_fields<kernels::block_loop>();
  hash.add_fields<kernels::block_rows>();
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto add_op = [&](std::string_view name, std::size_t size) {
      for (char c : name) hash.add(static_cast<unsigned char>(c));
      hash.add(size);
    };
    (add_op(type_name<default_registry::at<I>>(), sizeof(default_registry::at<I>)), ...);
  }
  (std::make_index_sequence<pointwise_ops::size + reduce_ops::size>{});
  hash.add(kernel_version);
  return hash.value();
}

/// Raises an `unsupported` error where the table is of a library that was built from other headers than its callers.
void check_isa(const isa_table& table);

}  // namespace kiln::eigen
