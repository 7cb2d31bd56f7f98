#pragma once
#include <algorithm>
#include <type_traits>

#include "kiln/core/simd.hpp"
#include "kiln/kernel/index/problem.hpp"
#include "kiln/kernel/simd/double_floats.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

struct running_sum {
  static constexpr int start = 0;
  template <class T> KILN_FN T operator()(T a, T b) const { return static_cast<T>(a + b); }
};
struct running_product {
  static constexpr int start = 1;
  template <class T> KILN_FN T operator()(T a, T b) const { return static_cast<T>(a * b); }
};

/// Floats are accumulated in double, integers wrap.
template <class T, class Combine> class scan {
  using acc = std::conditional_t<std::is_same_v<T, float>, double, T>;
  using wide = native_vec<acc>;
  static constexpr int width = lanes<wide>;
  using narrow = vec<T, width>;
  static constexpr Combine combine{};

 public:
  explicit scan(const scan_problem& p) : p_(p) {}
  void run(thread_pool& pool) const {
    const scan_problem& p = p_;
    if (p.outer * p.extent * p.inner == 0) return;
    if (p.inner > 1) return across(pool);
    // stretches of long rows are combined first, where threads would have no row
    if (p.outer < static_cast<std::int64_t>(pool.size()) && p.extent >= 4 * grain) return along_stretches(pool);
    const std::int64_t each = std::max<std::int64_t>(1, grain / p.extent);
    pool.parallel_for((p.outer + each - 1) / each, [&](std::int64_t task, unsigned) {
      for (std::int64_t o = task * each; o < std::min(p.outer, (task + 1) * each); ++o)
        along(o, 0, p.extent, acc(Combine::start));
    });
  }

 private:
  static constexpr std::int64_t grain = 16384;

  const T* in() const { return static_cast<const T*>(p_.x); }
  T* out() const { return static_cast<T*>(p_.y); }
  static KILN_FN wide widened(narrow v) {
    if constexpr (std::is_same_v<T, acc>)
      return v;
    else
      return as_doubles<wide>(v);
  }
  static KILN_FN narrow narrowed(wide v) {
    if constexpr (std::is_same_v<T, acc>)
      return v;
    else
      return __builtin_convertvector(v, narrow);
  }

  // Neighbors have accumulators of their own.
  void across(thread_pool& pool) const {
    const auto threads = static_cast<std::int64_t>(pool.size());
    const std::int64_t parts = p_.extent * p_.inner >= grain ? (2 * threads + p_.outer - 1) / p_.outer : 1;
    std::int64_t columns = std::clamp((p_.inner + parts - 1) / parts, least_columns, most_columns);
    columns = (columns + width - 1) / width * width;
    const std::int64_t blocks = (p_.inner + columns - 1) / columns;
    const std::int64_t stretches = std::min({threads, stretch_sums / p_.inner, p_.extent});
    if (stretches > p_.outer * blocks && p_.inner >= width && p_.extent * p_.inner >= 2 * grain)
      return across_stretches(pool, stretches);
    const std::int64_t each = std::max<std::int64_t>(1, grain / (p_.extent * columns));
    pool.parallel_for((p_.outer * blocks + each - 1) / each, [&](std::int64_t task, unsigned) {
      for (std::int64_t at = task * each; at < std::min(p_.outer * blocks, (task + 1) * each); ++at) {
        const std::int64_t first = at % blocks * columns;
        columns_of(at / blocks, first, std::min(columns, p_.inner - first));
      }
    });
  }
  // Both ends of each row of a thread's columns are lines of memory that other threads write, too: of few columns that
  // takes longer than the sums.
  static constexpr std::int64_t most_columns = 1024,
                                least_columns = std::min<std::int64_t>(most_columns, 2048 / sizeof(T));

  // Rows [first, ...) of some columns in the order of the scan.
  struct rows {
    const T* from;
    T* to;
    std::int64_t step, count, columns;
  };
  rows rows_of(std::int64_t o, std::int64_t column, std::int64_t columns, std::int64_t first, std::int64_t last) const {
    const std::int64_t row = p_.reverse ? p_.extent - 1 - first : first;
    const std::int64_t at = (o * p_.extent + row) * p_.inner + column;
    return {in() + at, out() + at, p_.reverse ? -p_.inner : p_.inner, last - first, columns};
  }
  void columns_of(std::int64_t o, std::int64_t first, std::int64_t n) const {
    const rows r = rows_of(o, first, n, 0, p_.extent);
    if (n < width)
      few_columns(r);
    else if constexpr (std::is_same_v<T, acc>)
      row_by_row(r);
    else
      p_.exclusive ? down<pass::exclusive>(r, nullptr) : down<pass::inclusive>(r, nullptr);
  }
  void few_columns(const rows& r) const {
    for (std::int64_t i = 0; i < r.columns; ++i) {
      acc sum = acc(Combine::start);
      for (std::int64_t k = 0; k < r.count; ++k) {
        const acc next = combine(sum, static_cast<acc>(r.from[k * r.step + i]));
        r.to[k * r.step + i] = static_cast<T>(p_.exclusive ? sum : next);
        sum = next;
      }
    }
  }
  // Each row is the one before it and another of x: they are read and written from end to end.
  void row_by_row(const rows& r) const {
    const T* from = r.from;
    T* to = r.to;
    if (p_.exclusive) {
      std::fill_n(to, r.columns, T(Combine::start));
    } else {  // a sum of 0 and x is not always x: that of -0 is 0
      const wide start = broadcast<wide>(T(Combine::start));
      each_vector(r.columns, [&](std::int64_t i) { store(to + i, combine(start, load<wide>(from + i))); });
      from += r.step;
    }
    for (std::int64_t k = 1; k < r.count; ++k, from += r.step, to += r.step)
      each_vector(r.columns,
                  [&](std::int64_t i) { store(to + r.step + i, combine(load<wide>(to + i), load<wide>(from + i))); });
  }
  // The last vector ends with the columns, `width` or more.
  static KILN_FN void each_vector(std::int64_t columns, auto&& some) {
    std::int64_t i = 0;
    for (; i + 4 * width <= columns; i += 4 * width) some(i), some(i + width), some(i + 2 * width), some(i + 3 * width);
    for (; i + width <= columns; i += width) some(i);
    if (i < columns) some(columns - width);
  }

  enum class pass { inclusive, exclusive, totals };
  // Down all rows with so many sums in registers, from `sums` where they are given; of totals nothing else is written
  // than the last ones, back there.
  static constexpr int most_sums = native_bytes == 64 ? 16 : 8;
  template <pass P> void down(const rows& r, acc* sums) const {
    const std::int64_t vectors = (r.columns + width - 1) / width, passes = (vectors + most_sums - 1) / most_sums;
    for (std::int64_t k = 0; k < passes; ++k) {
      const std::int64_t first = vectors * k / passes, last = vectors * (k + 1) / passes;
      down_by<P, 1>(r, sums, first * width, static_cast<int>(last - first));
    }
  }
  template <pass P, int N> void down_by(const rows& r, acc* sums, std::int64_t column, int vectors) const {
    if constexpr (N >= most_sums)
      down_vectors<P, most_sums>(r, sums, column);
    else if (vectors <= N)
      down_vectors<P, N>(r, sums, column);
    else
      down_by<P, N == 1 ? 2 : N + 2>(r, sums, column, vectors);
  }
  // N vectors of columns; those that reach past the last one end there instead, and do some twice.
  template <pass P, int N> [[gnu::noinline]] void down_vectors(const rows& r, acc* sums, std::int64_t first) const {
    wide sum[N];
    std::int64_t column[N];
#pragma GCC unroll 16
    for (int b = 0; b < N; ++b) {
      column[b] = std::min(first + b * width, r.columns - width);
      sum[b] = sums && P != pass::totals ? load<wide>(sums + column[b]) : broadcast<wide>(acc(Combine::start));
    }
    // what stores might change is read before
    const T* from = r.from;
    T* to = r.to;
    const std::int64_t count = r.count, step = r.step;
    for (std::int64_t k = 0; k < count; ++k, from += step, to += step) {
#pragma GCC unroll 16
      for (int b = 0; b < N; ++b) {
        const wide next = combine(sum[b], widened(load<narrow>(from + column[b])));
        if constexpr (P != pass::totals) store(to + column[b], narrowed(P == pass::exclusive ? sum[b] : next));
        sum[b] = next;
      }
    }
    if constexpr (P == pass::totals)
#pragma GCC unroll 16
      for (int b = 0; b < N; ++b) store(sums + column[b], sum[b]);
  }

  // Stretches of rows, at least one, are combined first, where fewer threads would have columns of their own.
  static constexpr std::int64_t stretch_sums = 4096;  // of all stretches
  void across_stretches(thread_pool& pool, std::int64_t stretches) const {
    acc sums[stretch_sums];
    const std::int64_t n = p_.inner, each = (p_.extent + stretches - 1) / stretches;
    const auto stretch = [&](std::int64_t o, std::int64_t s) {
      return rows_of(o, 0, n, std::min(p_.extent, s * each), std::min(p_.extent, (s + 1) * each));
    };
    for (std::int64_t o = 0; o < p_.outer; ++o) {
      std::fill_n(sums, n, acc(Combine::start));
      pool.parallel_for(stretches - 1,
                        [&](std::int64_t s, unsigned) { down<pass::totals>(stretch(o, s), sums + (s + 1) * n); });
      for (std::int64_t i = n; i < stretches * n; ++i) sums[i] = combine(sums[i - n], sums[i]);
      pool.parallel_for(stretches, [&](std::int64_t s, unsigned) {
        p_.exclusive ? down<pass::exclusive>(stretch(o, s), sums + s * n)
                     : down<pass::inclusive>(stretch(o, s), sums + s * n);
      });
    }
  }

  // Elements [first, last) of row o in the order of the scan; what they and `sum` come to.
  acc along(std::int64_t o, std::int64_t first, std::int64_t last, acc sum) const {
    const T* const from = in() + o * p_.extent;
    T* const to = out() + o * p_.extent;
    std::int64_t k = first;
    // a register at a time: its prefixes by doubling, which no earlier element delays
    for (; k + width <= last; k += width) {
      const std::int64_t at = p_.reverse ? p_.extent - k - width : k;
      wide v = widened(load<narrow>(from + at));
      if (p_.reverse) v = reversed(v);
      const wide all = prefixes(v);
      const wide before = broadcast<wide>(sum);
      wide made = combine(before, all);
      const acc next = made[width - 1];
      if (p_.exclusive) made = combine(before, shifted<1>(all));
      if (p_.reverse) made = reversed(made);
      store(to + at, narrowed(made));
      sum = next;
    }
    for (; k < last; ++k) {
      const std::int64_t at = p_.reverse ? p_.extent - 1 - k : k;
      const acc next = combine(sum, static_cast<acc>(from[at]));
      to[at] = static_cast<T>(p_.exclusive ? sum : next);
      sum = next;
    }
    return sum;
  }
  void along_stretches(thread_pool& pool) const {
    constexpr int most = 64;
    const std::int64_t stretches = std::min<std::int64_t>(most, 2 * static_cast<std::int64_t>(pool.size()));
    const std::int64_t each = (p_.extent + stretches - 1) / stretches;
    for (std::int64_t o = 0; o < p_.outer; ++o) {
      acc sums[most + 1];
      sums[0] = acc(Combine::start);
      const auto ends = [&](std::int64_t s) { return std::min(p_.extent, s * each); };
      pool.parallel_for(stretches - 1, [&](std::int64_t s, unsigned) { sums[s + 1] = total(o, ends(s), ends(s + 1)); });
      for (std::int64_t s = 1; s < stretches; ++s) sums[s] = combine(sums[s - 1], sums[s]);
      pool.parallel_for(stretches, [&](std::int64_t s, unsigned) { along(o, ends(s), ends(s + 1), sums[s]); });
    }
  }
  acc total(std::int64_t o, std::int64_t first, std::int64_t last) const {
    const T* const from = in() + o * p_.extent + (p_.reverse ? p_.extent - last : first);
    const std::int64_t n = last - first;
    wide sums[4] = {broadcast<wide>(acc(Combine::start)), broadcast<wide>(acc(Combine::start)),
                    broadcast<wide>(acc(Combine::start)), broadcast<wide>(acc(Combine::start))};
    std::int64_t k = 0;
    for (; k + 4 * width <= n; k += 4 * width)
      for (int s = 0; s < 4; ++s) sums[s] = combine(sums[s], widened(load<narrow>(from + k + s * width)));
    const wide both = combine(combine(sums[0], sums[1]), combine(sums[2], sums[3]));
    acc sum = both[0];
    for (int lane = 1; lane < width; ++lane) sum = combine(sum, static_cast<acc>(both[lane]));
    for (; k < n; ++k) sum = combine(sum, static_cast<acc>(from[k]));
    return sum;
  }

  static KILN_FN wide reversed(wide v) {
    return [&]<int... L>(std::integer_sequence<int, L...>) __attribute__((always_inline)) {
      return (wide)__builtin_shufflevector(v, v, (width - 1 - L)...);
    }
    (std::make_integer_sequence<int, width>{});
  }
  // Lanes move up by N; the first ones are the start.
  template <int N> static KILN_FN wide shifted(wide v) {
    const wide start = broadcast<wide>(acc(Combine::start));
    return [&]<int... L>(std::integer_sequence<int, L...>) __attribute__((always_inline)) {
      return (wide)__builtin_shufflevector(start, v, (L < N ? L : width + L - N)...);
    }
    (std::make_integer_sequence<int, width>{});
  }
  template <int N = 1> static KILN_FN wide prefixes(wide v) {
    if constexpr (N >= width)
      return v;
    else
      return prefixes<2 * N>(combine(shifted<N>(v), v));
  }

  const scan_problem& p_;
};

}  // namespace kiln::kernels
