#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

// Transpositions of blocks by vectors of 16 bytes, which any processor has.
namespace kiln::detail {

/// Lines of elements of T: vectors of 16 bytes.
template <class T> class lines_of {
 public:
  using line [[gnu::vector_size(16)]] = T;
  static constexpr int side = 16 / sizeof(T);

  /// The `side` elements at `from`, which may be any address.
  static line load(const T* from) {
    line v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  /// Writes a line to `to`, which may be any address.
  static void store(T* to, line v) { std::memcpy(to, &v, sizeof v); }

  /// Interleaves N lines (a power of two): element e of line n comes to place N * e + n of all of them. Lines are
  /// interleaved with those half of them away, as often as N halves.
  template <int N, int Left = N> [[gnu::always_inline]] static void interleave(line (&a)[N]) {
    line b[N];
    [&]<int... L>(std::integer_sequence<int, L...>) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int i = 0; i < N / 2; ++i) {
        b[2 * i] = __builtin_shufflevector(a[i], a[i + N / 2], (L / 2 + L % 2 * side)...);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + N / 2], (side / 2 + L / 2 + L % 2 * side)...);
      }
    }
    (std::make_integer_sequence<int, side>{});
    if constexpr (Left > 2) interleave<N, Left / 2>(b);
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) a[i] = b[i];
  }
  /// Parts what `interleave` makes: element N * e + n of all N lines (a power of two) comes to place e of line n.
  template <int N, int Left = N> [[gnu::always_inline]] static void part(line (&a)[N]) {
    line b[N];
    [&]<int... L>(std::integer_sequence<int, L...>) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int i = 0; i < N / 2; ++i) {
        b[i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], (2 * L)...);
        b[i + N / 2] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], (2 * L + 1)...);
      }
    }
    (std::make_integer_sequence<int, side>{});
    if constexpr (Left > 2) part<N, Left / 2>(b);
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) a[i] = b[i];
  }
  /// A line of words of N elements, a pixel and what follows it each, which begin `step` elements apart at `from`.
  template <int N> [[gnu::always_inline]] static line load_pixels(const T* from, std::int64_t step) {
    if (N == side || N == step) {
      return load(from);
    } else {
      words<N> v;
#pragma GCC unroll 8
      for (int i = 0; i < side / N; ++i) {
        word<N> w;
        std::memcpy(&w, from + i * step, sizeof w);
        v[i] = w;
      }
      return (line)v;
    }
  }
  /// Writes a line as words of N elements, which begin `step` elements apart at `to`, the next one over the last.
  template <int N> [[gnu::always_inline]] static void store_pixels(T* to, line all, std::int64_t step) {
    if (N == side || N == step) {
      store(to, all);
    } else {
      const auto v = (words<N>)all;
#pragma GCC unroll 8
      for (int i = 0; i < side / N; ++i) {
        const word<N> w = v[i];
        std::memcpy(to + i * step, &w, sizeof w);
      }
    }
  }

 private:
  template <int N>
  using word = std::conditional_t<N * sizeof(T) == 4, std::uint32_t,
                                  std::conditional_t<N * sizeof(T) == 2, std::uint16_t, std::uint64_t>>;
  template <int N> using words [[gnu::vector_size(16)]] = word<N>;
};

/// The least power of two that is `n` or more.
constexpr int power_of_two_from(int n) { return n <= 1 ? 1 : 2 * power_of_two_from((n + 1) / 2); }

/// to[r * Few + k] = from[r + k * step] for k < Few: pixels of a few planes. Lines are stored whole, and what they
/// write too much is written again by what follows.
template <class T, int Few> void join_planes(const T* from, std::int64_t step, T* to, std::int64_t n) {
  using lines = lines_of<T>;
  constexpr int side = lines::side, all = power_of_two_from(Few), pixels = side / all;
  std::int64_t r = 0;
  for (; (r + side - pixels) * Few + side <= n * Few; r += side) {
    typename lines::line a[all];
#pragma GCC unroll 16
    for (int k = 0; k < all; ++k) a[k] = lines::load(from + r + std::min(k, Few - 1) * step);
    lines::interleave(a);
#pragma GCC unroll 16
    for (int k = 0; k < all; ++k) lines::template store_pixels<all>(to + (r + k * pixels) * Few, a[k], Few);
  }
  for (; r < n; ++r)
    for (int k = 0; k < Few; ++k) to[r * Few + k] = from[r + k * step];
}

/// to[r + k * step] = from[r * Few + k] for k < Few.
template <class T, int Few> void part_planes(const T* from, T* to, std::int64_t step, std::int64_t n) {
  using lines = lines_of<T>;
  constexpr int side = lines::side, all = power_of_two_from(Few), pixels = side / all;
  const auto some = [&](std::int64_t r) __attribute__((always_inline)) {
    typename lines::line a[all];
#pragma GCC unroll 16
    for (int k = 0; k < all; ++k) a[k] = lines::template load_pixels<all>(from + (r + k * pixels) * Few, Few);
    lines::part(a);
#pragma GCC unroll 16
    for (int k = 0; k < Few; ++k) lines::store(to + r + k * step, a[k]);
  };
  // the last lines end where all do, and do some elements twice, where they read nothing past the end
  std::int64_t r = 0;
  for (; (r + side - pixels) * Few + side <= n * Few; r += side) some(r);
  if (all == Few && r > 0 && r < n) return some(n - side);
  for (; r < n; ++r)
    for (int k = 0; k < Few; ++k) to[r + k * step] = from[r * Few + k];
}

/// Calls f with the constant `few`, 2 to side - 1.
template <class T, class F> void with_few([[maybe_unused]] std::int64_t few, [[maybe_unused]] F&& f) {
  [&]<int... L>(std::integer_sequence<int, L...>) {
    (void)((few == L + 2 ? (f(std::integral_constant<int, L + 2>{}), true) : false) || ...);
  }
  (std::make_integer_sequence<int, lines_of<T>::side - 2>{});
}

/// A square of as many rows as a vector has elements, transposed.
template <class T> void transpose_square(const T* from, std::int64_t from_row, T* to, std::int64_t to_row) {
  using lines = lines_of<T>;
  typename lines::line a[lines::side];
#pragma GCC unroll 16
  for (int i = 0; i < lines::side; ++i) a[i] = lines::load(from + i * from_row);
  lines::interleave(a);
#pragma GCC unroll 16
  for (int i = 0; i < lines::side; ++i) lines::store(to + i * to_row, a[i]);
}

/// N rows, a power of two, of as many columns as a vector has elements: to[r * to_row + c] = from[r + c * from_col].
template <class T, int N> void transpose_rows(const T* from, std::int64_t from_col, T* to, std::int64_t to_row) {
  using lines = lines_of<T>;
  if constexpr (N == lines::side) {
    transpose_square(from, from_col, to, to_row);
  } else if constexpr (N == 1) {
    for (int c = 0; c < lines::side; ++c) to[c] = from[c * from_col];
  } else {
    constexpr int pixels = lines::side / N;
    typename lines::line a[N];
#pragma GCC unroll 16
    for (int k = 0; k < N; ++k) a[k] = lines::template load_pixels<N>(from + k * pixels * from_col, from_col);
    lines::part(a);
#pragma GCC unroll 16
    for (int k = 0; k < N; ++k) lines::store(to + k * to_row, a[k]);
  }
}

/// Calls f with the constant `rows`, a power of two up to N.
template <int N, class F> void with_rows(std::int64_t rows, F&& f) {
  if constexpr (N > 1)
    if (rows < N) return with_rows<N / 2>(rows, f);
  f(std::integral_constant<int, N>{});
}

/// to[r * to_row + c] = from[r + c * from_col].
template <class T>
void transpose_block(const T* from, std::int64_t from_col, T* to, std::int64_t to_row, std::int64_t rows,
                     std::int64_t cols) {
  constexpr std::int64_t side = lines_of<T>::side;
  if (cols > 1 && cols < side && cols == to_row && rows >= side)
    return with_few<T>(cols, [&](auto few) { join_planes<T, few>(from, from_col, to, rows); });
  if (rows > 1 && rows < side && rows == from_col && cols >= side)
    return with_few<T>(rows, [&](auto few) { part_planes<T, few>(from, to, to_row, cols); });
  if (cols < side) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) to[i * to_row + j] = from[i + j * from_col];
    return;
  }
  // The lines of both sides of a block stay in L1. What is left over of rows is the next power of two of them, which
  // end where all do; the last ones of squares do so, too: some elements are moved twice.
  constexpr std::int64_t block = sizeof(T) == 8 ? 32 : 64;
  for (std::int64_t first = 0; first < cols; first += block)
    for (std::int64_t r = 0; r < rows;) {
      std::int64_t some = power_of_two_from(static_cast<int>(std::min(side, rows - r)));
      if (some > rows) some /= 2;
      const std::int64_t i = std::min(r, rows - some);
      with_rows<side>(some, [&](auto count) {
        for (std::int64_t c = first; c < std::min(cols, first + block); c += side) {
          const std::int64_t j = std::min(c, cols - side);
          transpose_rows<T, count>(from + i + j * from_col, from_col, to + i * to_row + j, to_row);
        }
      });
      r = i + some;
    }
}

}  // namespace kiln::detail
