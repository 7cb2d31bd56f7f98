#pragma once
#include <algorithm>
#include <type_traits>

#include "kiln/core/simd.hpp"
#include "kiln/kernel/index/problem.hpp"
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
      return __builtin_convertvector(v, wide);
  }
  static KILN_FN narrow narrowed(wide v) {
    if constexpr (std::is_same_v<T, acc>)
      return v;
    else
      return __builtin_convertvector(v, narrow);
  }

  // Neighbors have accumulators of their own.
  void across(thread_pool& pool) const {
    constexpr std::int64_t most = 256;
    const auto threads = static_cast<std::int64_t>(pool.size());
    // as many columns as give each thread work: narrow ones share lines of memory
    std::int64_t columns = std::min(most, p_.inner);
    if (p_.outer < 2 * threads && p_.extent * p_.inner >= grain) {
      const std::int64_t parts = (2 * threads + p_.outer - 1) / p_.outer;
      columns = std::clamp<std::int64_t>((p_.inner + parts - 1) / parts, 1, columns);
    }
    columns = std::min(most, (columns + width - 1) / width * width);
    const std::int64_t blocks = (p_.inner + columns - 1) / columns;
    const std::int64_t each = std::max<std::int64_t>(1, grain / (p_.extent * columns));
    pool.parallel_for((p_.outer * blocks + each - 1) / each, [&](std::int64_t task, unsigned) {
      for (std::int64_t at = task * each; at < std::min(p_.outer * blocks, (task + 1) * each); ++at) {
        const std::int64_t first = at % blocks * columns;
        columns_of(at / blocks, first, std::min(columns, p_.inner - first));
      }
    });
  }
  void columns_of(std::int64_t o, std::int64_t first, std::int64_t n) const {
    const std::int64_t at = o * p_.extent * p_.inner + first;
    if (n < width) {
      for (std::int64_t i = 0; i < n; ++i) {
        acc sum = acc(Combine::start);
        for (std::int64_t k = 0; k < p_.extent; ++k) {
          const std::int64_t e = at + i + (p_.reverse ? p_.extent - 1 - k : k) * p_.inner;
          const acc next = combine(sum, static_cast<acc>(in()[e]));
          out()[e] = static_cast<T>(p_.exclusive ? sum : next);
          sum = next;
        }
      }
      return;
    }
    for (std::int64_t i = 0; i < n; i += 8 * width) {
      const std::int64_t left = (std::min<std::int64_t>(n - i, 8 * width) + width - 1) / width;
      if (left > 4)
        down<8>(at, i, n);
      else if (left > 2)
        down<4>(at, i, n);
      else
        down<2>(at, i, n);
    }
  }
  // N registers of columns from i on down all rows; those that reach past the n-th end there instead, and do some
  // twice.
  template <int N> void down(std::int64_t at, std::int64_t i, std::int64_t n) const {
    wide sums[N];
    std::int64_t column[N];
#pragma GCC unroll 8
    for (int b = 0; b < N; ++b) {
      sums[b] = broadcast<wide>(acc(Combine::start));
      column[b] = std::min(i + b * width, n - width);
    }
    // what stores might change is read before
    const std::int64_t extent = p_.extent, step = p_.reverse ? -p_.inner : p_.inner;
    const T* from = in() + at + (p_.reverse ? (extent - 1) * p_.inner : 0);
    T* to = out() + (from - in());
    const bool exclusive = p_.exclusive;
    for (std::int64_t k = 0; k < extent; ++k, from += step, to += step) {
      wide next[N];
#pragma GCC unroll 8
      for (int b = 0; b < N; ++b) next[b] = combine(sums[b], widened(load<narrow>(from + column[b])));
#pragma GCC unroll 8
      for (int b = 0; b < N; ++b) {
        store(to + column[b], narrowed(exclusive ? sums[b] : next[b]));
        sums[b] = next[b];
      }
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
