#pragma once
#include <limits>

#include "kiln/meta/type_name.hpp"
#include "kiln/op/contraction.hpp"

namespace kiln {

namespace detail {

template <class Op> constexpr bool result_is_bool() {
  using T = probe_type<Op>;
  constexpr auto n = static_cast<std::size_t>(call_arity<Op>()), c = static_cast<std::size_t>(condition_args_of<Op>());
  return []<std::size_t... C, std::size_t... I>(std::index_sequence<C...>, std::index_sequence<I...>) {
    return std::is_same_v<std::invoke_result_t<const Op&, repeat<bool, C>..., repeat<T, I>...>, bool>;
  }
  (std::make_index_sequence<c>{}, std::make_index_sequence<n - c>{});
}

/// The input whose dtype selects the compute type: the first value of a pointwise op, input 0 otherwise.
template <class Op> constexpr int typed_input() {
  if constexpr (requires { Op::typed_input; })
    return Op::typed_input;
  else
    return condition_args_of<Op>();
}

constexpr fault wrong_count(std::int64_t expected, std::size_t found) {
  return fault::of(errc::invalid_argument, "number of inputs", expected, found);
}

template <class Op> constexpr result<shapes> pointwise_shape(const Op& op, std::span<const shape> in) {
  constexpr auto n = static_cast<std::size_t>(call_arity<Op>()),
                 conditions = static_cast<std::size_t>(condition_args_of<Op>());
  if (in.size() != n) return wrong_count(n, in.size());
  for (std::size_t i = 0; i < conditions; ++i)
    if (in[i].type != dtype::boolean)
      return fault::of(errc::shape_mismatch, "dtype of a condition", dtype::boolean, in[i].type);
  const dtype t = in[conditions].type;
  for (std::size_t i = conditions; i < n; ++i)
    if (in[i].type != t) return fault::of(errc::shape_mismatch, "operands have one dtype", t, in[i].type);
  if (!types_of<Op>().contains(t))
    return fault::of(errc::unsupported, "dtype of the operands", "one that the op computes in", t);
  for (std::size_t i = 1; i < n; ++i)
    if (!(in[i].lens == in[0].lens))
      return fault::of(errc::shape_mismatch, "operands have equal dims", in[0].lens, in[i].lens);
  dtype to = t;
  if constexpr (requires { op.result_type(t); }) {
    to = op.result_type(t);
    if (!dtypes::convertible.contains(to))
      return fault::of(errc::unsupported, "dtype of the result", "a number or bool", to);
  } else if constexpr (result_is_bool<Op>()) {
    to = dtype::boolean;
  }
  return shapes{shape{to, in[0].lens}};
}

}  // namespace detail

/// The axes of a reduction as flags: negative axes count from the end, none means all.
constexpr result<inline_vector<bool, max_rank>> reduced_dims(const ints& axes, std::size_t rank) {
  inline_vector<bool, max_rank> on(rank, axes.empty());
  for (std::int64_t a : axes) {
    const std::int64_t n = normal_axis(a, rank);
    if (n < 0) return fault::of(errc::shape_mismatch, "a reduced axis lies within the rank", rank, a);
    on[static_cast<std::size_t>(n)] = true;
  }
  return on;
}

namespace detail {

template <class Op> constexpr result<shapes> reduction_shape(const Op& op, std::span<const shape> in) {
  if (in.size() != 1) return wrong_count(1, in.size());
  if (!types_of<Op>().contains(in[0].type))
    return fault::of(errc::unsupported, "dtype of the operand", "one that the op computes in", in[0].type);
  const auto on = reduced_dims(op.axes, in[0].rank());
  if (!on) return on.why();
  dims lens = in[0].lens;
  for (std::size_t d = 0; d < lens.size(); ++d)
    if ((*on)[d]) lens[d] = 1;
  return shapes{shape{in[0].type, lens}};
}

}  // namespace detail

/// The shape rule of an op: shapes of its results, or the fault.
template <class Op> constexpr result<shapes> shape_of(const Op& op, std::span<const shape> in) {
  constexpr op_kind kind = kind_of<Op>();
  if constexpr (kind == op_kind::pointwise) {
    return detail::pointwise_shape(op, in);
  } else if constexpr (kind == op_kind::reduction) {
    return detail::reduction_shape(op, in);
  } else if constexpr (kind == op_kind::view) {
    if (in.size() != 1) return detail::wrong_count(1, in.size());
    const auto out = op.map(layout::standard(in[0].lens));
    if (!out) return out.why();
    return shapes{shape{in[0].type, out->lens}};
  } else if constexpr (kind == op_kind::contraction) {
    const auto c = op.maps(in);
    if (!c) return c.why();
    return shapes{shape{c->type, c->out_lens}};
  } else if constexpr (calling<Op>) {
    return fault::of(errc::internal, "shapes of a calling op come with its instruction");
  } else {
    const auto out = op.compute_shape(in);
    if (!out) return out.why();
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(*out)>, shape>)
      return shapes{*out};
    else
      return *out;
  }
}

namespace detail {

template <class Op, class T, std::size_t... C, std::size_t... I>
constexpr void evaluate_pointwise(const Op& op, evaluation& e, std::index_sequence<C...>, std::index_sequence<I...>) {
  using R = std::invoke_result_t<const Op&, repeat<bool, C>..., repeat<T, I>...>;
  const dense<const bool> conditions[sizeof...(C) + 1] = {e.in<bool>(C)...};
  const dense<const T> values[sizeof...(I)] = {e.in<T>(sizeof...(C) + I)...};
  const dense<R> out = e.out<R>();
  for (std::int64_t k = 0; k < out.size(); ++k) out[k] = op(conditions[C][k]..., values[I][k]...);
}

/// The value of an integer dtype nearest to x: a greatest element over nothing is that dtype's least value, though the
/// computation runs in 64 bits. Other dtypes keep x.
template <class T> constexpr T nearest_in(dtype t, T x) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return visit_storage(t, [&]<class S>(type_tag<S>) {
      if constexpr (std::is_integral_v<S> && std::is_signed_v<S> == std::is_signed_v<T>)
        return x < std::numeric_limits<S>::min()   ? T(std::numeric_limits<S>::min())
               : x > std::numeric_limits<S>::max() ? T(std::numeric_limits<S>::max())
                                                   : x;
      else
        return x;
    });
  else
    return x;
}

template <class Op, class T> constexpr void evaluate_reduction(const Op& op, evaluation& e) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  const auto in = e.in<T>(0);
  const auto out = e.out<T>();
  const dtype out_type = e.out_shape(0).type;
  const auto on = reduced_dims(op.axes, in.rank()).value();
  ints kept, folded, kept_step, folded_step;
  const ints strides = row_major(in.lens);
  for (std::size_t d = 0; d < in.rank(); ++d) {
    (on[d] ? folded : kept).push_back(in.lens[d]);
    (on[d] ? folded_step : kept_step).push_back(strides[d]);
  }
  const std::int64_t n = product(folded);
  ints at(kept.size(), 0);
  for (std::int64_t k = 0; k < out.size(); ++k) {
    std::int64_t base = 0;
    for (std::size_t d = 0; d < at.size(); ++d) base += at[d] * kept_step[d];
    Sum acc = identity_of<Sum>(op);
    ints inner(folded.size(), 0);
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t o = base;
      for (std::size_t d = 0; d < inner.size(); ++d) o += inner[d] * folded_step[d];
      Sum x = static_cast<Sum>(in[o]);
      if constexpr (requires { op.prepare(x); }) x = op.prepare(x);
      acc = op.combine(acc, x);
      next_index(inner, folded);
    }
    if (n == 0) acc = nearest_in(out_type, acc);
    if constexpr (requires { op.finish(acc, Sum(n)); }) acc = op.finish(acc, Sum(n));
    out[k] = static_cast<T>(acc);
    next_index(at, kept);
  }
}

template <class Op, class T> constexpr void evaluate_view(const Op& op, evaluation& e) {
  const auto in = e.in<T>(0);
  const auto out = e.out<T>();
  const layout l = op.map(layout::standard(e.in_shape(0).lens)).value();
  const ints steps = to_ints(l.strides);
  const std::int64_t base = l.offset.value();
  ints at(out.rank(), 0);
  for (std::int64_t k = 0; k < out.size(); ++k) {
    std::int64_t o = base;
    for (std::size_t d = 0; d < at.size(); ++d) o += at[d] * steps[d];
    out[k] = in[o];
    next_index(at, out.lens);
  }
}

template <class Op, class T> constexpr void evaluate_as(const Op& op, evaluation& e) {
  constexpr op_kind kind = kind_of<Op>();
  if constexpr (kind == op_kind::pointwise) {
    constexpr auto n = static_cast<std::size_t>(call_arity<Op>()),
                   c = static_cast<std::size_t>(condition_args_of<Op>());
    evaluate_pointwise<Op, T>(op, e, std::make_index_sequence<c>{}, std::make_index_sequence<n - c>{});
  } else if constexpr (kind == op_kind::reduction) {
    evaluate_reduction<Op, T>(op, e);
  } else if constexpr (kind == op_kind::view) {
    evaluate_view<Op, T>(op, e);
  } else if constexpr (kind == op_kind::contraction) {
    inline_vector<shape, 2> in;
    for (std::size_t i = 0; i < e.inputs(); ++i) in.push_back(e.in_shape(i));
    if constexpr (requires { op.outside; } && !std::is_same_v<T, dimension>)
      evaluate_contraction<T>(op.maps(in).value(), e, T(op.outside));
    else if constexpr (!std::is_same_v<T, dimension>)
      evaluate_contraction<T>(op.maps(in).value(), e);
  } else {
    op.template compute<T>(e);
  }
}

}  // namespace detail

/// Whether the op's reference computation runs over symbolic dimensions.
template <class Op> constexpr bool folds_dimensions() {
  return detail::types_of<Op>().dims() || kind_of<Op>() == op_kind::view;
}

/// Runs the op's reference computation. The compute type follows the typed input's dtype (the result's when there is no
/// input); `symbolic` computes over dimensions instead.
template <class Op> constexpr void evaluate(const Op& op, evaluation& e, bool symbolic = false) {
  if constexpr (kind_of<Op>() == op_kind::control) {
    raise(fault::of(errc::internal, "a control op is evaluated by its caller"));
  } else {
    if (symbolic) {
      if constexpr (folds_dimensions<Op>())
        detail::evaluate_as<Op, dimension>(op, e);
      else
        raise(fault::of(errc::unsupported, "the op computes over symbolic dimensions"));
      return;
    }
    constexpr auto at = static_cast<std::size_t>(detail::typed_input<Op>());
    const dtype t = e.inputs() > at ? e.in_shape(at).type : e.out_shape(0).type;
    visit_compute(t, [&]<class T>(type_tag<T>) {
      constexpr std::uint32_t served = (std::is_same_v<T, double>          ? 1u
                                        : std::is_same_v<T, float>         ? 0x0eu
                                        : std::is_same_v<T, std::int64_t>  ? dtypes::signed_integers.mask
                                        : std::is_same_v<T, std::uint64_t> ? dtypes::unsigned_integers.mask
                                                                           : dtypes::boolean.mask);
      if constexpr ((detail::types_of<Op>().mask & served) != 0)
        detail::evaluate_as<Op, T>(op, e);
      else
        raise(fault::of(errc::unsupported, "dtype the op computes in", "one of its types", t));
    });
  }
}

}  // namespace kiln
