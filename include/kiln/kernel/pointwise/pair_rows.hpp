#pragma once
#include <cstring>
#include <type_traits>

#include "kiln/core/simd.hpp"
#include "kiln/kernel/pointwise/pair_rows_problem.hpp"

namespace kiln::kernels {

/// The wide loops of one op over elements of T; `Function` gives a vector of T or, if it `compares`, of truths (0 or
/// all bits).
template <class T, class Function> class row_pair_loop {
  // what bools are read as; any byte but 0 is true
  using E = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
  using V = native_vec<E>;
  static constexpr std::int64_t width = lanes<V>, together = 4;  // vectors of a step
  static constexpr bool truths = requires { Function::compares; };
  using R = std::conditional_t<truths, std::uint8_t, E>;
  using result = vec<R, int(width)>;

 public:
  static void run(const row_pairs& p) {
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const E* const a = reinterpret_cast<const E*>(p.a + r * p.a_step);
      const E* const b = reinterpret_cast<const E*>(p.b + r * p.b_step);
      R* const to = reinterpret_cast<R*>(p.to + r * p.to_step);
      if (!p.repeats)
        row(
            p, a, to, [&](std::int64_t k) __attribute__((always_inline)) { return made(read(a + k), read(b + k)); });
      else if (!decided(*b, to, p.row))
        row(
            p, a, to, [&, s = broadcast<V>(*b) ](std::int64_t k) __attribute__((always_inline)) {
              return made(read(a + k), canonical(s));
            });
    }
    if (p.past_cache) stream_fence();
    leave_wide_registers();
  }

 private:
  static KILN_FN V canonical(V x) {
    if constexpr (std::is_same_v<T, bool>)
      return x < broadcast<V>(1) ? x : broadcast<V>(1);
    else
      return x;
  }
  static KILN_FN V read(const E* p) { return canonical(load<V>(p)); }
  static KILN_FN result made(V x, V y) {
    const auto z = Function{}(x, y);
    if constexpr (!truths)
      return z;
    else if constexpr (sizeof(E) == 1)
      return (result)(z & 1);
    else
      return __builtin_convertvector(z & 1, result);
  }

  // Rows that one truth decides, whatever the other operand is.
  static bool decided(E b, R* to, std::int64_t n) {
    if constexpr (requires { Function::deciding; }) {
      if ((b != 0) != Function::deciding) return false;
      std::memset(to, Function::deciding, static_cast<std::size_t>(n));
      return true;
    }
    return false;
  }

  // The first and the last vector are computed before anything is written, since results may be where operands are;
  // what is between goes by whole lines of the result.
  template <class At> static KILN_FN void row(const row_pairs& p, const E* a, R* to, const At& at) {
    const std::int64_t n = p.row;
    constexpr auto line = static_cast<std::uintptr_t>(sizeof(result));
    const auto skipped = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) % line / sizeof(R));
    const result first = at(0), last = at(n - width);
    std::int64_t k = skipped;
    if constexpr (sizeof(result) == native_bytes)
      if (p.past_cache && reinterpret_cast<std::uintptr_t>(to + skipped) % line == 0)  // not of split elements
        for (; k + together * width <= n; k += together * width) several<true>(p, a, to, k, at);
    for (; k + together * width <= n; k += together * width) several<false>(p, a, to, k, at);
    for (; k + width <= n; k += width) store(to + k, at(k));
    if (k < n) store(to + n - width, last);
    if (skipped != 0) store(to, first);
  }
  template <bool Past, class At>
  static KILN_FN void several(const row_pairs& p, const E* a, R* to, std::int64_t k, const At& at) {
    if (p.ahead != 0) {
      const auto* const from = reinterpret_cast<const std::byte*>(a + k) + p.ahead;
      const auto* const there = reinterpret_cast<const std::byte*>(to + k) + p.ahead;
#pragma GCC unroll 4
      for (std::size_t b = 0; b < together * sizeof(V); b += 64) __builtin_prefetch(from + b);
#pragma GCC unroll 4
      for (std::size_t b = 0; !Past && b < together * sizeof(result); b += 64) __builtin_prefetch(there + b, 1);
    }
    const result y[together] = {at(k), at(k + width), at(k + 2 * width), at(k + 3 * width)};
#pragma GCC unroll 4
    for (int i = 0; i < together; ++i) {
      if constexpr (Past)
        stream(to + k + i * width, y[i]);
      else
        store(to + k + i * width, y[i]);
    }
  }
};

}  // namespace kiln::kernels
