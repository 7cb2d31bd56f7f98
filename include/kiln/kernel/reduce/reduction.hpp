#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "kiln/kernel/reduce/problem.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// One way to fold elements T to A; integers wrap.
template <reduction_kind Kind, class T, class A> struct reduction_step {
  static constexpr bool is_sum = Kind == reduction_kind::sum || Kind == reduction_kind::sum_of_magnitudes ||
                                 Kind == reduction_kind::sum_of_squares;
  using wrapping = typename std::conditional_t<std::is_integral_v<A>, std::make_unsigned<A>, std::type_identity<A>>::type;

  static constexpr A identity() {
    using limits = std::numeric_limits<A>;
    if constexpr (Kind == reduction_kind::maximum)
      return limits::has_infinity ? -limits::infinity() : limits::lowest();
    else if constexpr (Kind == reduction_kind::minimum)
      return limits::has_infinity ? limits::infinity() : limits::max();
    else
      return Kind == reduction_kind::product ? A(1) : A(0);
  }
  static A prepared(T x) {
    if constexpr (Kind == reduction_kind::sum_of_magnitudes)
      return static_cast<A>(x < 0 ? -x : x);
    else if constexpr (Kind == reduction_kind::sum_of_squares)
      return static_cast<A>(static_cast<wrapping>(x) * static_cast<wrapping>(x));
    else
      return static_cast<A>(x);
  }
  // A NaN stays.
  static A combined(A a, A x) {
    if constexpr (Kind == reduction_kind::maximum)
      return (a > x) | (a != a) ? a : x;
    else if constexpr (Kind == reduction_kind::minimum)
      return (a < x) | (a != a) ? a : x;
    else if constexpr (Kind == reduction_kind::product)
      return static_cast<A>(static_cast<wrapping>(a) * static_cast<wrapping>(x));
    else
      return static_cast<A>(static_cast<wrapping>(a) + static_cast<wrapping>(x));
  }
};

/// Folds T to A, both as they lie in memory. Sums of floats are made of sums of at most 256 elements of each of several
/// lanes, those of whole rows in f64.
template <class T, class A, class Step, class Again> class reducer {
 public:
  static void run(thread_pool& pool, const reduction_problem& p, A* scratch) {
    const std::int64_t n = p.stretches(pool.size());
    A* const out = static_cast<A*>(p.out);
    if (n == 1) return fold<T, Step>(pool, p, static_cast<const T*>(p.in), out, 1);
    fold<T, Step>(pool, p, static_cast<const T*>(p.in), scratch, n);
    reduction_problem last = p;
    last.extent = n;
    fold<A, Again>(pool, last, scratch, out, 1);
  }

 private:
  // in[outer, extent, inner] to out[outer, stretches, inner].
  template <class E, class S>
  static void fold(thread_pool& pool, const reduction_problem& p, const E* in, A* out, std::int64_t stretches) {
    const std::int64_t blocks = p.blocks(), parts = p.outer * stretches * blocks,
                       cost = std::max<std::int64_t>(1, p.extent / stretches * std::min(p.inner, p.most_columns)),
                       each = std::max<std::int64_t>(1, 16384 / (cost + 8));
    pool.parallel_for((parts + each - 1) / each, [&](std::int64_t task, unsigned) {
      for (std::int64_t k = task * each; k < std::min(parts, (task + 1) * each); ++k) {
        const std::int64_t block = k % blocks, at = k / blocks, s = at % stretches, o = at / stretches;
        const std::int64_t first = s * p.extent / stretches, last = (s + 1) * p.extent / stretches;
        const E* const from = in + (o * p.extent + first) * p.inner;
        if (p.inner == 1) {
          out[at] = row<E, S>(from, last - first);
        } else {
          const std::int64_t column = block * p.most_columns;
          columns<E, S>(from + column, out + at * p.inner + column, last - first, p.inner,
                        std::min(p.most_columns, p.inner - column));
        }
      }
    });
  }

  static constexpr bool is_float_sum = Step::is_sum && std::is_floating_point_v<A>;

  template <class E, class S> static A row(const E* __restrict x, std::int64_t n) {
    constexpr std::int64_t lanes = 256 / sizeof(A), stretch = is_float_sum ? 256 * lanes : (std::int64_t{1} << 60);
    using total = std::conditional_t<is_float_sum, double, A>;
    if (n < lanes) {
      A acc = S::identity();
      for (std::int64_t k = 0; k < n; ++k) acc = S::combined(acc, S::prepared(x[k]));
      return acc;
    }
    total all = static_cast<total>(S::identity());
    std::int64_t k = 0;
    while (n - k >= lanes) {
      const std::int64_t end = k + std::min(stretch, (n - k) / lanes * lanes);
      A acc[lanes];
      for (std::int64_t j = 0; j < lanes; ++j) acc[j] = S::identity();
      for (; k < end; k += lanes)
        for (std::int64_t j = 0; j < lanes; ++j) acc[j] = S::combined(acc[j], S::prepared(x[k + j]));
      for (std::int64_t half = lanes / 2; half > 0; half /= 2)
        for (std::int64_t j = 0; j < half; ++j) acc[j] = S::combined(acc[j], acc[j + half]);
      all = add(all, acc[0]);
    }
    for (; k < n; ++k) all = add(all, S::prepared(x[k]));
    return static_cast<A>(all);
  }
  template <class Total> static Total add(Total all, A part) {
    if constexpr (is_float_sum)
      return all + static_cast<Total>(part);
    else
      return Step::combined(all, part);
  }

  template <class E, class S>
  static void columns(const E* __restrict x, A* __restrict out, std::int64_t extent, std::int64_t step,
                      std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) out[j] = S::identity();
    if constexpr (is_float_sum) {
      A acc[reduction_problem::most_columns];
      for (std::int64_t k = 0; k < extent;) {
        const std::int64_t end = std::min(extent, k + 256);
        for (std::int64_t j = 0; j < n; ++j) acc[j] = 0;
        rows_of_columns<E, S>(x, acc, k, end, step, n);
        k = end;
        for (std::int64_t j = 0; j < n; ++j) out[j] += acc[j];
      }
    } else {
      rows_of_columns<E, S>(x, out, 0, extent, step, n);
    }
  }
  // Four rows at once: the accumulators go through the first-level cache once for them.
  template <class E, class S>
  static void rows_of_columns(const E* __restrict x, A* __restrict acc, std::int64_t k, std::int64_t end,
                              std::int64_t step, std::int64_t n) {
    for (; k + 4 <= end; k += 4) {
      const E* __restrict at = x + k * step;
      for (std::int64_t j = 0; j < n; ++j) {
        const A low = S::combined(S::prepared(at[j]), S::prepared(at[step + j])),
                high = S::combined(S::prepared(at[2 * step + j]), S::prepared(at[3 * step + j]));
        acc[j] = S::combined(acc[j], S::combined(low, high));
      }
    }
    for (; k < end; ++k)
      for (std::int64_t j = 0; j < n; ++j) acc[j] = S::combined(acc[j], S::prepared(x[k * step + j]));
  }
};

}  // namespace kiln::kernels
