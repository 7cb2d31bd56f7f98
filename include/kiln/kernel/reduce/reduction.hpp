#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "kiln/core/math.hpp"
#include "kiln/kernel/reduce/problem.hpp"
#include "kiln/kernel/simd/strided_lanes.hpp"
#include "kiln/kernel/simd/transpose.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// One way to fold elements T to A; integers wrap.
template <reduction_kind Kind, class T, class A> struct reduction_step {
  static constexpr bool is_sum = Kind == reduction_kind::sum || Kind == reduction_kind::sum_of_magnitudes ||
                                 Kind == reduction_kind::sum_of_squares;

  static constexpr A identity() {
    using limits = std::numeric_limits<A>;
    if constexpr (Kind == reduction_kind::maximum)
      return limits::has_infinity ? -limits::infinity() : limits::lowest();
    else if constexpr (Kind == reduction_kind::minimum)
      return limits::has_infinity ? limits::infinity() : limits::max();
    else
      return Kind == reduction_kind::product ? A(1) : A(0);
  }
  /// Whether an element may be taken twice.
  static constexpr bool is_extreme = Kind == reduction_kind::maximum || Kind == reduction_kind::minimum;
  static A prepared(T x) { return prepared_in_place(static_cast<A>(x)); }
  // Of elements or vectors of them. A NaN stays.
  template <class X> static KILN_FN X prepared_in_place(X x) {
    if constexpr (Kind == reduction_kind::sum_of_magnitudes && std::is_signed_v<A>)
      return kiln::max(x, negated(x));
    else if constexpr (Kind == reduction_kind::sum_of_squares)
      return product(x, x);
    else
      return x;
  }
  template <class X> static KILN_FN X negated(X x) {
    if constexpr (std::is_integral_v<A>) {
      using U = rebind_t<X, std::make_unsigned_t<A>>;
      return (X)(U)(U{} - (U)x);
    } else {
      return -x;
    }
  }
  template <class X> static KILN_FN X product(X a, X b) {
    if constexpr (std::is_integral_v<A>) {
      using U = rebind_t<X, std::make_unsigned_t<A>>;
      return (X)((U)a * (U)b);
    } else {
      return a * b;
    }
  }
  template <class X> static KILN_FN X combined(X a, X x) {
    if constexpr (Kind == reduction_kind::maximum)
      return kiln::max(a, x);
    else if constexpr (Kind == reduction_kind::minimum)
      return kiln::min(a, x);
    else if constexpr (Kind == reduction_kind::product)
      return product(a, x);
    else if constexpr (std::is_integral_v<A>) {
      using U = rebind_t<X, std::make_unsigned_t<A>>;
      return (X)((U)a + (U)x);
    } else {
      return a + x;
    }
  }
  // All lanes.
  template <is_vec V> static KILN_FN A across(V v) {
    if constexpr (Kind == reduction_kind::maximum)
      return reduce_max(v);
    else if constexpr (Kind == reduction_kind::minimum)
      return reduce_min(v);
    else if constexpr (Kind == reduction_kind::product)
      return reduce_mul(v);
    else
      return reduce_add(v);
  }
};

/// Folds T to A, both as they lie in memory. Sums of floats are sums in f64 of sums of at most 1024 elements in each
/// lane.
template <class T, class A, class Step, class Again> class reducer {
 public:
  static void run(thread_pool& pool, const reduction_problem& p, A* scratch) {
    const std::int64_t n = p.stretches(pool.size());
    A* const out = static_cast<A*>(p.out);
    if (n == 1) return fold<T, Step>(pool, p, static_cast<const T*>(p.in), out, 1);
    reduction_problem parts = p, last = p;
    parts.divisor = 1;
    fold<T, Step>(pool, parts, static_cast<const T*>(p.in), scratch, n);
    last.extent = n;
    fold<A, Again>(pool, last, scratch, out, 1);
  }

 private:
  // in[outer, extent, inner] to out[outer, stretches, inner].
  template <class E, class S>
  static void fold(thread_pool& pool, const reduction_problem& p, const E* in, A* out, std::int64_t stretches) {
    const std::int64_t blocks = p.blocks(), parts = p.outer * stretches * blocks,
                       cost = std::max<std::int64_t>(1, p.extent / stretches * std::min(p.inner, p.most_columns)),
                       each = std::max<std::int64_t>(1, 16384 / (cost + 8)),
                       threads = static_cast<std::int64_t>(pool.size());
    // Pieces of rows beyond the caches are prefetched some rows ahead: hardware begins anew at each.
    constexpr std::int64_t cached = 1 << 20, rows_ahead = 4;
    const std::int64_t all = p.outer * p.extent * p.inner * static_cast<std::int64_t>(sizeof(E));
    const std::int64_t ahead = all > cached ? rows_ahead * p.inner : 0;
    std::int64_t tasks = (parts + each - 1) / each;
    // few tasks are as many for each thread
    if (tasks > 1 && tasks < 8 * threads) tasks = std::min(parts, (tasks + threads - 1) / threads * threads);
    pool.parallel_for(tasks, [&](std::int64_t task, unsigned) {
      std::int64_t k = task * parts / tasks;
      const std::int64_t end = (task + 1) * parts / tasks;
      if constexpr (std::is_same_v<E, A> && sizeof(A) >= 4)
        if (p.inner == 1 && stretches == 1 && p.extent > 1 && p.extent < lanes)
          return short_rows<S>(in + k * p.extent, p.extent, end - k, p.divisor, out + k);
      if constexpr (S::is_extreme && std::is_same_v<E, A> && lanes >= 4)
        if (p.inner == 1 && stretches == 1 && p.extent >= lanes)
          for (; k + 4 <= end; k += 4) four_rows<S>(in + k * p.extent, p.extent, out + k);
      for (; k < end; ++k) {
        const std::int64_t block = k % blocks, at = k / blocks, s = at % stretches, o = at / stretches;
        const std::int64_t first = s * p.extent / stretches, last = (s + 1) * p.extent / stretches;
        const E* const from = in + (o * p.extent + first) * p.inner;
        const std::int64_t column = block * p.columns(), count = std::min(p.columns(), p.inner - column);
        A* const to = out + at * p.inner + column;
        if (p.inner == 1)
          *to = row<E, S>(from, last - first);
        else
          columns<E, S>(from + column, to, last - first, p.inner, count, ahead);
        if (p.divisor != 1) divide(to, count, p.divisor);
      }
    });
  }

  // Zero sums of nothing are NaN.
  static void divide(A* x, std::int64_t n, std::int64_t by) {
    if constexpr (std::is_floating_point_v<A>) {
      const A divisor = static_cast<A>(by);
      const V each = broadcast<V>(divisor);
      std::int64_t i = 0;
      for (; i + lanes <= n; i += lanes) store(x + i, load<V>(x + i) / each);
      for (; i < n; ++i) x[i] /= divisor;
    }
  }

  static constexpr bool is_float_sum = Step::is_sum && std::is_floating_point_v<A>;

  using V = native_vec<A>;
  static constexpr std::int64_t lanes = native_lanes<A>;

  template <class E, class S> static A row(const E* x, std::int64_t n) {
    if constexpr (!std::is_same_v<E, A>) {
      A acc = S::identity();
      for (std::int64_t k = 0; k < n; ++k) acc = S::combined(acc, S::prepared(x[k]));
      return acc;
    } else {
      using total = std::conditional_t<is_float_sum, double, A>;
      total all = static_cast<total>(S::identity());
      std::int64_t k = 0;
      while (n - k >= lanes) {
        const std::int64_t end = is_float_sum ? std::min(n, k + 1024 * lanes) : n;
        all = add(all, stretch<S>(x, k, end));
      }
      if constexpr (S::is_sum) {
        if (k < n) all = add(all, S::across(S::prepared_in_place(load_n<V>(x + k, static_cast<int>(n - k)))));
      } else {
        for (; k < n; ++k) all = add(all, S::prepared(x[k]));
      }
      return static_cast<A>(all);
    }
  }
  // As many rows of n < lanes elements as vectors have lanes at once, each lane a row. Every row's elements are
  // combined in the order in which `across` combines lanes.
  template <class S> static void short_rows(const A* x, std::int64_t n, std::int64_t rows, std::int64_t by, A* out) {
    alignas(64) A some[lanes * lanes];
    for (; rows >= lanes; rows -= lanes, x += lanes * n, out += lanes) store(out, folded_rows<S>(x, n, by));
    if (rows == 0) return;
    std::copy_n(x, rows * n, some);
    std::fill_n(some + rows * n, (lanes - rows) * n, A(0));
    store_n(out, folded_rows<S>(some, n, by), static_cast<int>(rows));
  }
  template <class S> static KILN_FN V folded_rows(const A* x, std::int64_t n, std::int64_t by) {
    constexpr std::int64_t few = 4;  // that are read faster from where they lie
    const auto read = [](V v) { return S::prepared_in_place(v); };
    V all;
    if (native_bytes == 64 && n <= few) {
      const auto at = [&](std::int64_t k) { return read(strided_lanes<V>(x + k, n)); };
      all = at(0);
      if (n > 2) all = S::combined(all, at(2));
      all = S::combined(all, n > 3 ? S::combined(at(1), at(3)) : at(1));
    } else {
      alignas(64) A column[lanes * lanes];
      transpose_block(x, n, column, lanes, lanes, n);
      V v[lanes];
      for (std::int64_t k = 0; k < n; ++k) v[k] = read(load<V>(column + k * lanes));
      for (std::int64_t half = lanes / 2; half > 0; half /= 2)
        for (std::int64_t k = 0; k < std::min(half, n - half); ++k) v[k] = S::combined(v[k], v[k + half]);
      all = v[0];
    }
    if constexpr (std::is_floating_point_v<A>)
      if (by != 1) all /= broadcast<V>(static_cast<A>(by));
    return all;
  }
  // Rows of n elements, one after the other: their lanes are folded together, since one row's take longer than its
  // elements where these are few.
  template <class S> static void four_rows(const A* x, std::int64_t n, A* out) {
    V row[4];
    for (int r = 0; r < 4; ++r) {
      std::int64_t k = 0;
      row[r] = partial<S>(x + r * n, k, n);
    }
    constexpr int half = lanes / 2, quarter = lanes / 4;
    // Of each block of two operands the first half, then the second.
    const auto halved = [&]<int Block, int... L>(V a, V b, std::integral_constant<int, Block>,
                                                 std::integer_sequence<int, L...>) __attribute__((always_inline)) {
      const auto low = (V)__builtin_shufflevector(a, b, (L / Block * 2 * Block + L % Block)...);
      const auto high = (V)__builtin_shufflevector(a, b, (L / Block * 2 * Block + L % Block + Block)...);
      return S::combined(low, high);
    };
    constexpr std::make_integer_sequence<int, static_cast<int>(lanes)> each{};
    const auto by_half = std::integral_constant<int, half>{};
    V all = halved(halved(row[0], row[1], by_half, each), halved(row[2], row[3], by_half, each),
                   std::integral_constant<int, quarter>{}, each);
    const auto within = [&]<int Apart, int... L>(auto&& self, std::integral_constant<int, Apart>,
                                                 std::integer_sequence<int, L...> s) __attribute__((always_inline)) {
      if constexpr (Apart > 0) {
        all = S::combined(all, (V)__builtin_shufflevector(all, all, (L ^ Apart)...));
        self(self, std::integral_constant<int, Apart / 2>{}, s);
      }
    };
    within(within, std::integral_constant<int, quarter / 2>{}, each);
    for (int r = 0; r < 4; ++r) out[r] = all[r * quarter];
  }
  template <class S> static A stretch(const A* x, std::int64_t& k, std::int64_t end) {
    return S::across(partial<S>(x, k, end));
  }
  // The lanes of whole vectors of elements [k, end), of which there is one or more; k goes on.
  template <class S> static KILN_FN V partial(const A* x, std::int64_t& k, std::int64_t end) {
    const auto read = [&](std::int64_t at) { return S::prepared_in_place(load<V>(x + at)); };
    V acc = read(k);
    k += lanes;
    if (end - k >= 4 * lanes) {
      V more[3] = {read(k), read(k + lanes), read(k + 2 * lanes)};
      for (k += 3 * lanes; k + 4 * lanes <= end; k += 4 * lanes) {
        acc = S::combined(acc, read(k));
        for (int v = 0; v < 3; ++v) more[v] = S::combined(more[v], read(k + (v + 1) * lanes));
      }
      acc = S::combined(S::combined(acc, more[0]), S::combined(more[1], more[2]));
    }
    for (; k + lanes <= end; k += lanes) acc = S::combined(acc, read(k));
    if constexpr (S::is_extreme)
      if (k < end) acc = S::combined(acc, read(end - lanes)), k = end;
    return acc;
  }
  template <class Total> static Total add(Total all, A part) {
    if constexpr (is_float_sum)
      return all + static_cast<Total>(part);
    else
      return Step::combined(all, part);
  }

  template <class E, class S>
  static void columns(const E* x, A* out, std::int64_t extent, std::int64_t step, std::int64_t n, std::int64_t ahead) {
    constexpr std::int64_t short_sum = 256;
    if constexpr (is_float_sum) {
      if (extent <= short_sum) {
        std::fill_n(out, n, A(0));
        return rows_of_columns<E, S>(x, out, 0, extent, step, n, ahead);
      }
      A acc[reduction_problem::most_columns];
      double all[reduction_problem::most_columns];
      std::fill_n(all, n, 0.0);
      for (std::int64_t k = 0; k < extent;) {
        const std::int64_t end = std::min(extent, k + short_sum);
        std::fill_n(acc, n, A(0));
        rows_of_columns<E, S>(x, acc, k, end, step, n, ahead);
        k = end;
        for (std::int64_t j = 0; j < n; ++j) all[j] += static_cast<double>(acc[j]);
      }
      for (std::int64_t j = 0; j < n; ++j) out[j] = static_cast<A>(all[j]);
    } else {
      std::fill_n(out, n, S::identity());
      rows_of_columns<E, S>(x, out, 0, extent, step, n, ahead);
    }
  }
  // Four rows at once: the accumulators go through L1 once for them.
  template <class E, class S>
  static void rows_of_columns(const E* x, A* __restrict acc, std::int64_t k, std::int64_t end, std::int64_t step,
                              std::int64_t n, std::int64_t ahead) {
    if constexpr (!std::is_same_v<E, A>) {
      for (; k < end; ++k)
        for (std::int64_t j = 0; j < n; ++j) acc[j] = S::combined(acc[j], S::prepared(x[k * step + j]));
    } else {
      const auto rows = [&]<int Rows>(std::integral_constant<int, Rows>) {
        const A* const at = x + k * step;
        const auto fold = [&](V sum, auto&& read) {
          V some = read(at);
          for (int r = 1; r < Rows; ++r) some = S::combined(some, read(at + r * step));
          return S::combined(sum, some);
        };
        std::int64_t j = 0;
        for (; j + lanes <= n; j += lanes) {
          if (ahead != 0)
            for (int r = 0; r < Rows; ++r) __builtin_prefetch(at + r * step + ahead + j);
          store(acc + j, fold(load<V>(acc + j), [&](const A* p) { return S::prepared_in_place(load<V>(p + j)); }));
        }
        if (const int rest = static_cast<int>(n - j); rest > 0)
          store_n(
              acc + j,
              fold(load_n<V>(acc + j, rest), [&](const A* p) { return S::prepared_in_place(load_n<V>(p + j, rest)); }),
              rest);
      };
      for (; k + 4 <= end; k += 4) rows(std::integral_constant<int, 4>());
      for (; k < end; ++k) rows(std::integral_constant<int, 1>());
    }
  }
};

}  // namespace kiln::kernels
