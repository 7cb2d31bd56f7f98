#pragma once
#include <cstring>
#include <type_traits>

#include "kiln/core/simd.hpp"
#include "kiln/kernel/pointwise/op_cost.hpp"
#include "kiln/kernel/pointwise/pair_rows_problem.hpp"
#include "kiln/op/table.hpp"

namespace kiln::kernels {

/// Whether an op of two operands takes so few instructions over elements of T that reading and writing them is most of
/// the time.
template <class Op, class T> constexpr bool is_pair_of_rows() {
  // simple ops take up to 3; the next, shifts that ask for the width, 9, and others a polynomial
  constexpr int most = 4;
  if constexpr (kind_of<Op>() == op_kind::pointwise) {
    constexpr dtype_set types = detail::types_of<Op>();
    if constexpr (detail::call_arity<Op>() == 2 && detail::condition_args_of<Op>() == 0 && types.contains(dtype_of<T>))
      return op_cost<Op, std::is_integral_v<T>>(std::make_index_sequence<2>{}) <= most;
  }
  return false;
}

/// The wide loops of one op over elements of T. Integers wrap: units that include this are compiled with -fwrapv.
template <class Op, class T> class row_pair_loop {
  static constexpr bool conditions = std::is_same_v<T, bool>;
  // what bools are read as; any byte but 0 is true
  using E = std::conditional_t<conditions, std::uint8_t, T>;
  using V = native_vec<E>;
  static constexpr std::int64_t width = lanes<V>, together = 4;  // vectors of a step
  static constexpr bool truths = conditions || detail::result_is_bool<Op>();
  using R = std::conditional_t<truths, std::uint8_t, E>;
  using result = vec<R, int(width)>;

 public:
  static void run(const row_pairs& p) {
    // a copy: stores to the result must not seem to change the attributes
    const Op op = *static_cast<const Op*>(p.op);
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const E* const a = reinterpret_cast<const E*>(p.a + r * p.a_step);
      const E* const b = reinterpret_cast<const E*>(p.b + r * p.b_step);
      R* const to = reinterpret_cast<R*>(p.to + r * p.to_step);
      if (!p.repeats)
        row(
            p, a,
            to, [&](std::int64_t k) __attribute__((always_inline)) { return made(op(read(a + k), read(b + k))); });
      else if (decided(op, *b, p.swapped, to, p.row))
        continue;
      else if (!is_commutative && p.swapped)
        row(
            p, a, to, [&, s = operand(broadcast<V>(*b)) ](std::int64_t k) __attribute__((always_inline)) {
              return made(op(s, read(a + k)));
            });
      else
        row(
            p, a, to, [&, s = operand(broadcast<V>(*b)) ](std::int64_t k) __attribute__((always_inline)) {
              return made(op(read(a + k), s));
            });
    }
    if (p.past_cache) stream_fence();
    leave_wide_registers();
  }

 private:
  // Of floats, which operand comes first decides which zero is the greater or lesser one.
  static constexpr bool is_commutative = info_of<Op>().commutative && std::is_integral_v<T>;

  // As the op wants it: conditions are masks.
  static KILN_FN auto operand(V x) {
    if constexpr (conditions)
      return x != broadcast<V>(0);
    else
      return x;
  }
  static KILN_FN auto read(const E* p) { return operand(load<V>(p)); }
  template <class Z> static KILN_FN result made(Z z) {
    if constexpr (!truths)
      return z;
    else if constexpr (sizeof(E) == 1)
      return (result)(z & 1);
    else
      return __builtin_convertvector(z & 1, result);
  }

  // Rows that one condition decides, whatever the other operand is.
  static bool decided(const Op& op, E repeated, bool swapped, R* to, std::int64_t n) {
    if constexpr (conditions) {
      const bool b = repeated != 0, of_false = swapped ? op(b, false) : op(false, b);
      if (of_false != (swapped ? op(b, true) : op(true, b))) return false;
      std::memset(to, of_false, static_cast<std::size_t>(n));
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
