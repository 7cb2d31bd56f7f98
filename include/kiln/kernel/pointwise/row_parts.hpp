#pragma once
#include <limits>

#include "kiln/kernel/pointwise/block_moves.hpp"

namespace kiln::kernels {

namespace loop_steps {
inline constexpr std::size_t group = 4;  ///< vectors that a loop works on at a time
}

/// What a compiled loop holds of an operand of T that follows the rows.
template <class T> struct row_operand_of {
  T* first;
  std::ptrdiff_t row = 0;  // elements from one row to the next

  row_operand_of(std::uint16_t place, const block_frame& frame, const block_rows& over)
      : first(reinterpret_cast<T*>(frame.at[place])) {
    for (std::size_t k = 0; k < over.move_count; ++k)
      if (over.moves[k].place == place) row = over.moves[k].bytes / static_cast<std::int64_t>(sizeof(T));
  }
  KILN_FN T* at(std::int64_t r) const { return first + r * row; }
};
using row_operand = row_operand_of<float>;

/// How much of a row a loop works on at a time: some vectors, or the first `rest` lanes of one.
template <std::size_t Vectors, bool Partial> struct row_part {
  static constexpr std::ptrdiff_t width = native_lanes<float>;
  float_vec x[Vectors];  ///< the value that passes from step to step
  std::ptrdiff_t from;   ///< element of the row
  int rest;

  KILN_FN float_vec read(const float* row, std::ptrdiff_t v) const {
    if constexpr (Partial)
      return load_n<float_vec>(row + from, rest);
    else
      return load<float_vec>(row + from + v * width);
  }
  KILN_FN void write(float* row, std::ptrdiff_t v, float_vec y) const {
    if constexpr (Partial)
      store_n(row + from, y, rest);
    else
      store(row + from + v * width, y);
  }
  /// Calls one(v) for each vector, v being a constant so that vectors stay in registers.
  template <class Each> KILN_FN static void each(Each&& one) {
    [&]<std::size_t... V>(std::index_sequence<V...>) __attribute__((always_inline)) {
      (one(std::integral_constant<std::size_t, V>{}), ...);
    }
    (std::make_index_sequence<Vectors>{});
  }
};

/// The rows of a compiled loop, part by part: `begin(r)` gives what is held while row r runs, `run(part, held)` does a
/// part of it, `end(r, held)` closes it.
template <class Begin, class Run, class End>
KILN_FN void each_row(const block_rows& over, const Begin& begin, const Run& run, const End& end) {
  constexpr std::ptrdiff_t width = native_lanes<float>, together = loop_steps::group * width, stretch = 4 * together;
  const std::int64_t n = over.elements;
  // Prefetches cover some groups at a time, or some short rows: one for each group took as many instructions as the
  // norms themselves.
  const std::int64_t at_once = n >= together && n < stretch ? stretch / n : 1;
  std::int64_t due =
      over.fetch_count != 0 ? 0 : std::numeric_limits<std::int64_t>::max();  // the row that prefetches next
  for (std::int64_t r = 0; r == 0 || r < over.rows; ++r) {
    auto held = begin(r);
    const auto part = [&]<std::size_t Vectors, bool Partial>(std::ptrdiff_t from, int rest)
        __attribute__((always_inline)) {
      row_part<Vectors, Partial> p;
      p.from = from;
      p.rest = rest;
      run(p, held);
    };
    std::int64_t from = 0;
    for (; from + together <= n; from += together) {
      if (from % stretch == 0 && r >= due) {
        const std::int64_t elements = at_once * (n - from < stretch ? n - from : stretch);
        fetch(over.fetches, over.fetch_count, (elements + width - 1) / width);
        if (at_once > 1) due = r + at_once;
      }
      part.template operator()<loop_steps::group, false>(from, 0);
    }
    for (; from + width <= n; from += width) part.template operator()<1, false>(from, 0);
    if (from < n) part.template operator()<1, true>(from, static_cast<int>(n - from));
    end(r, held);
  }
  leave_wide_registers();
}

}  // namespace kiln::kernels
