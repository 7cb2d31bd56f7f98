#pragma once
#include "kiln/static_program/step/lanes.hpp"

namespace kiln::aot {

/// The op of node K of a step's body, as its own type.
template <class Step, std::size_t K> struct node_op {
  using type = typename Step::net::registry_type::template at<static_cast<std::size_t>(Step::body[K].op)>;
  static constexpr type op = from_words<type>(Step::net::words + Step::body[K].attributes);
};

/// The one element of a literal node.
template <class Step, std::size_t K>
inline constexpr auto literal_value = from_words<compute_of<Step::body[K].type>>(&Step::body[K].attributes);

/// Whether a body may run over vectors of F: all its values are F or conditions, and no condition lies in memory.
template <class Step, class F> constexpr bool vector_body() {
  for (std::size_t k = 0; k < Step::nodes; ++k) {
    const node& n = Step::body[k];
    if (n.type == dtype_of<F>) continue;
    if (n.type != dtype::boolean || n.op == node::parameter) return false;
  }
  for (std::size_t k = 0; k < Step::outputs; ++k)
    if (Step::out[k].type != dtype_of<F>) return false;
  return true;
}

/// The lanes of a step whose operands are contiguous or constant along the inner dim.
template <class Step, bool Contiguous>
using lanes_of = std::conditional_t<
    Contiguous && vector_body<Step, float>(), vector_lanes<float>,
    std::conditional_t<Contiguous && vector_body<Step, double>(), vector_lanes<double>, scalar_lanes>>;

namespace detail {

template <class Step, std::size_t K, class Lanes, class Regs, std::size_t... C, std::size_t... I>
KILN_FN void compute_pointwise(Regs* r, std::index_sequence<C...>, std::index_sequence<I...>) {
  constexpr node n = Step::body[K];
  using T = compute_of<Step::body[n.inputs[sizeof...(C)]].type>;
  using To = compute_of<n.type>;
  const auto made =
      node_op<Step, K>::op(r[n.inputs[C]].template get<bool>()..., r[n.inputs[sizeof...(C) + I]].template get<T>()...);
  if constexpr (std::is_same_v<Lanes, scalar_lanes>)
    r[K].template get<To>() = convert_value<To>(convert_value<stored_of<n.type>>(made));
  else
    r[K].template get<To>() = made;
}

}  // namespace detail

/// Computes node K into its register from those of its operands; parameters are the caller's.
template <class Step, std::size_t K, class Lanes> KILN_FN void compute_node(typename Lanes::reg* r) {
  constexpr node n = Step::body[K];
  using T = compute_of<n.type>;
  if constexpr (n.op == node::literal) {
    r[K].template get<T>() = splat<typename Lanes::template of<T>>(literal_value<Step, K>);
  } else if constexpr (n.kind == op_kind::view) {
    r[K] = r[n.inputs[0]];
  } else {
    using op_type = typename node_op<Step, K>::type;
    static_assert(pointwise<op_type>, "kiln: the body of a step holds pointwise ops, reductions and repeats");
    constexpr auto conditions = static_cast<std::size_t>(kiln::detail::condition_args_of<op_type>());
    detail::compute_pointwise<Step, K, Lanes>(r, std::make_index_sequence<conditions>{},
                                              std::make_index_sequence<n.inputs.size() - conditions>{});
  }
}

/// Calls `f` with std::integral_constant<std::size_t, 0>, 1, … N - 1.
template <std::size_t N, class F> KILN_FN void each(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (f(std::integral_constant<std::size_t, I>{}), ...); }
  (std::make_index_sequence<N>{});
}

}  // namespace kiln::aot
