#pragma once
#include "kiln/core/dtype.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/kernel/pointwise/quotients.hpp"
#include "kiln/kernel/simd/stored_floats.hpp"
#include "kiln/op/pointwise/clip.hpp"
#include "kiln/op/pointwise/div.hpp"
#include "kiln/op/table.hpp"

/// Tiles of other types than f32: loops over contiguous elements that the compiler turns into vectors (units that
/// include this are compiled at -O3), in the width of the storage type. Integers wrap, so that a result is the one that
/// 64 bits give when they are stored.
namespace kiln::kernels {

namespace typed {

/// What elements are loaded as: g++ makes no vectors of what it loads as bool.
template <class T> using loaded = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
template <class T> KILN_FN T value_of(loaded<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else
    return x;
}

/// The type that `visit_compute` gives for T.
template <class T>
using computed_in = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>,
                                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, T>;

template <class Op, class T, std::size_t... C, std::size_t... I>
void pointwise(const Op& op, const void* const* in, void* out, std::int64_t n, std::index_sequence<C...>,
               std::index_sequence<I...>) {
  using R = std::invoke_result_t<const Op&, detail::repeat<bool, C>..., detail::repeat<T, I>...>;
  const std::uint8_t* const conditions[sizeof...(C) + 1] = {static_cast<const std::uint8_t*>(in[C])...};
  const loaded<T>* const values[sizeof...(I)] = {static_cast<const loaded<T>*>(in[sizeof...(C) + I])...};
  R* const result = static_cast<R*>(out);
  (void)conditions;
  // a result may be where an operand is, element by element
#pragma GCC ivdep
  for (std::int64_t k = 0; k < n; ++k) result[k] = op((conditions[C][k] != 0)..., value_of<T>(values[I][k])...);
}

/// As `convert_value`, in steps that all have vector forms.
template <class To> To whole_number(double x) {
  constexpr auto most = static_cast<double>(std::numeric_limits<To>::max());
  x = x == x ? x : 0;
  x = x < most ? x : most;
  if constexpr (std::is_signed_v<To>) {
    constexpr auto least = static_cast<double>(std::numeric_limits<To>::min());
    return static_cast<To>(static_cast<std::int32_t>(x > least ? x : least));
  } else {
    // negative ones wrap; those beyond 64 bits have zeros for low bits
    return static_cast<To>(static_cast<std::int64_t>(x > -0x1p63 ? x : 0));
  }
}

}  // namespace typed

namespace typed {

/// Bounds by vectors: g++ compares six times for the branches of a scalar.
inline void clipped(const op::clip& clip, const double* x, const double* low, const double* high, double* out,
                    std::int64_t n) {
  using V = native_vec<double>;
  constexpr std::int64_t lanes = native_lanes<double>;
  std::int64_t k = 0;
  for (; k + lanes <= n; k += lanes) store(out + k, clip(load<V>(x + k), load<V>(low + k), load<V>(high + k)));
  for (; k < n; ++k) out[k] = clip(x[k], low[k], high[k]);
}

}  // namespace typed

template <class Op, class T> void typed_tile(const void* data, const void* const* in, void* out, std::int64_t n) {
  constexpr auto arity = static_cast<std::size_t>(detail::call_arity<Op>()),
                 c = static_cast<std::size_t>(detail::condition_args_of<Op>());
  if constexpr (std::is_same_v<Op, op::div> && std::is_integral_v<T>)
    return typed::quotients(static_cast<const T*>(in[0]), static_cast<const T*>(in[1]), static_cast<T*>(out), n);
  // a copy: stores to the result must not seem to change the attributes
  const Op op = *static_cast<const Op*>(data);
  if constexpr (std::is_same_v<Op, op::clip> && std::is_same_v<T, double>)
    return typed::clipped(op, static_cast<const T*>(in[0]), static_cast<const T*>(in[1]), static_cast<const T*>(in[2]),
                          static_cast<T*>(out), n);
  else
    typed::pointwise<Op, T>(op, in, out, n, std::make_index_sequence<c>{}, std::make_index_sequence<arity - c>{});
}

/// acc = combine(acc, prepare(in[i])) over n contiguous elements of type T; `acc` is of the type that T computes in.
/// Reductions without a `finish` run in T, since what is stored in the end is the same; others in the type of `acc`.
template <class Op, class T> void typed_fold(const void* data, const void* from, std::int64_t n, void* acc) {
  using C = typed::computed_in<T>;
  using A = std::conditional_t<detail::finishes<Op, C>, C, T>;
  constexpr int lanes = native_lanes<A>, parts = 4;
  const Op op = *static_cast<const Op*>(data);
  const T* const in = static_cast<const T*>(from);
  const auto prepared = [&](auto x) {
    if constexpr (requires { op.prepare(x); })
      return op.prepare(x);
    else
      return x;
  };
  C total = *static_cast<const C*>(acc);
  std::int64_t at = 0;
  if (n >= lanes) {
    A part[parts][lanes];
    for (auto& p : part)
      for (A& x : p) x = identity_of<A>(op);
    for (; at + parts * lanes <= n; at += parts * lanes)
      for (int p = 0; p < parts; ++p)
        for (int k = 0; k < lanes; ++k)
          part[p][k] = op.combine(part[p][k], prepared(static_cast<A>(in[at + p * lanes + k])));
    for (; at + lanes <= n; at += lanes)
      for (int k = 0; k < lanes; ++k) part[0][k] = op.combine(part[0][k], prepared(static_cast<A>(in[at + k])));
    for (auto& p : part)
      for (const A x : p) total = op.combine(total, static_cast<C>(x));
  }
  for (; at < n; ++at) total = op.combine(total, prepared(static_cast<C>(in[at])));
  *static_cast<C*>(acc) = total;
}

template <class T> inline constexpr bool is_short_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <class T> void widen_floats(const T* in, float* out, std::int64_t n) {
  constexpr std::int64_t lanes = native_lanes<float>;
  std::int64_t k = 0;
  for (; k + lanes <= n; k += lanes) store(out + k, load_stored<native_vec<float>>(in + k));
  for (; k < n; ++k) out[k] = static_cast<float>(in[k]);
}
template <class T> void narrow_floats(const float* in, T* out, std::int64_t n) {
  constexpr std::int64_t lanes = native_lanes<float>;
  std::int64_t k = 0;
  for (; k + lanes <= n; k += lanes) store_as(out + k, load<native_vec<float>>(in + k));
  for (; k < n; ++k) out[k] = T(in[k]);
}

/// n contiguous elements as another type (`convert_value`); floats of 16 bits by way of float.
template <class From, class To> void converted_tile(const void* from, void* to, std::int64_t n) {
  const From* const in = static_cast<const From*>(from);
  To* const out = static_cast<To*>(to);
  if constexpr (std::is_same_v<From, float> && is_short_float<To>) {
    narrow_floats(in, out, n);
  } else if constexpr (is_short_float<From> && std::is_same_v<To, float>) {
    widen_floats(in, out, n);
  } else if constexpr (is_short_float<From> || is_short_float<To>) {
    constexpr std::int64_t some = 256;
    float floats[some];
    for (std::int64_t k = 0; k < n; k += some) {
      const std::int64_t m = n - k < some ? n - k : some;
      converted_tile<From, float>(in + k, floats, m);
      converted_tile<float, To>(floats, out + k, m);
    }
  } else {
    const auto* const stored = static_cast<const typed::loaded<From>*>(from);
#pragma GCC ivdep
    for (std::int64_t k = 0; k < n; ++k) {
      if constexpr (std::is_same_v<From, double> && std::is_integral_v<To> && !std::is_same_v<To, bool> &&
                    sizeof(To) <= 4)
        out[k] = typed::whole_number<To>(stored[k]);
      else
        out[k] = convert_value<To>(stored[k]);  // a bool is a byte of 0 or 1
    }
  }
}

/// n floats as the nearest ones that T holds; in place or elsewhere.
template <class T> void rounded_tile(const void* from, void* to, std::int64_t n) {
  constexpr std::int64_t some = 256;
  T narrow[some];
  for (std::int64_t k = 0; k < n; k += some) {
    const std::int64_t m = n - k < some ? n - k : some;
    narrow_floats(static_cast<const float*>(from) + k, narrow, m);
    widen_floats(narrow, static_cast<float*>(to) + k, m);
  }
}

template <class T> void repeated_tile(const void* from, void* to, std::int64_t n) {
  const T value = *static_cast<const T*>(from);
  T* const out = static_cast<T*>(to);
  for (std::int64_t k = 0; k < n; ++k) out[k] = value;
}

/// Each of `count` elements, `step` apart, `times` times one after another, by whole vectors: the next element's are
/// over what the last one of this element's wrote too much.
template <class T>
void spread_elements(const void* from, std::ptrdiff_t step, void* to, std::int64_t count, std::int64_t times) {
  using vector = native_vec<T>;
  constexpr std::int64_t lanes = native_lanes<T>;
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (std::int64_t k = 0; k < count; ++k, in += step, out += times) {
    const auto value = broadcast<vector>(*in);
    std::int64_t at = 0;
    do {
      store(out + at, value);
      at += lanes;
    } while (at < times);
  }
}

}  // namespace kiln::kernels
