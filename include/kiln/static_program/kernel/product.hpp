#pragma once
#include <cstdint>
#include <type_traits>

#include "kiln/kernel/simd/vector.hpp"

// Static programs instantiate this text, and exported programs contain it: it needs vectors and nothing else.
namespace kiln::kernels {

/// Extents and element steps of a product C[m, n] = A[m, k] * B[k, n] as constants; rows of B are contiguous, and with
/// `whole` they may be read up to the next multiple of a vector.
struct product_extents {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t a_row = 0, a_step = 1, b_row = 0;
  bool whole = false;
  std::int64_t ahead = 0;  ///< elements from an element of B to what is fetched meanwhile; 0: nothing
};

/// How a product is cut into tiles of `rows` x `vectors` sums, which stay in registers.
struct product_tiles {
  std::int64_t strips = 1;  ///< of columns
  int vectors = 1, rows = 1, last_vectors = 1, last_lanes = 1;

  /// `registers` hold sums; the columns are cut into even strips.
  static constexpr product_tiles of(const product_extents& p, int lanes, int registers) {
    product_tiles t;
    const std::int64_t all = (p.n + lanes - 1) / lanes, widest = p.m >= 4 ? (registers >= 24 ? 4 : 2) : 8;
    t.strips = (all + widest - 1) / widest;
    t.vectors = static_cast<int>((all + t.strips - 1) / t.strips);
    t.strips = (all + t.vectors - 1) / t.vectors;
    t.last_vectors = static_cast<int>(all - (t.strips - 1) * t.vectors);
    t.last_lanes = static_cast<int>(p.n - (all - 1) * lanes);
    const std::int64_t most = registers / t.vectors;
    t.rows = static_cast<int>(p.m < most ? p.m : most);
    for (std::int64_t r = t.rows; 2 * r > most; --r)
      if (p.m % r == 0) {
        t.rows = static_cast<int>(r);
        break;
      }
    return t;
  }
};

/// One tile at (row, column): `put(row, column, lanes, sums)` takes its vectors, the last one of Last lanes. Few sums
/// are split along k, so that their additions do not wait for each other.
template <product_extents P, int Lanes, int Rows, int Vectors, int Last, class T, class Put>
KILN_FN void product_tile(const T* a, const T* b, std::int64_t row, std::int64_t column, Put&& put) {
  using V = vec<T, Lanes>;
  constexpr int wanted = Rows * Vectors >= 8 ? 1 : 8 / (Rows * Vectors);
  constexpr int parts = P.k >= 4 * wanted ? wanted : 1;
  constexpr std::int64_t whole = P.k / parts * parts;
  V sum[parts][Rows][Vectors];
#pragma GCC unroll 8
  for (int p = 0; p < parts; ++p)
#pragma GCC unroll 32
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sum[p][r][v] = V{};
  const T* left = a + row * P.a_row;
  const T* right = b + column;
  [[maybe_unused]] const T* ahead =
      b + P.ahead + row / Rows * Lanes % (Vectors * Lanes);  // a tile fetches one line of each row
  const auto add = [&](V(&to)[Rows][Vectors], const T* l, const T* from) {
    V line[Vectors];
    if constexpr (P.ahead != 0) {
      __builtin_prefetch(ahead, 0, 2);
      ahead += P.b_row;
    }
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      if (P.whole || Last == Lanes || v + 1 < Vectors)
        line[v] = load<V>(from + v * Lanes);
      else
        line[v] = load_n<V>(from + v * Lanes, Last);
    }
#pragma GCC unroll 32
    for (int r = 0; r < Rows; ++r) {
      const V scale = splat<V>(l[r * P.a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) to[r][v] = multiply_add(scale, line[v], to[r][v]);
    }
  };
  for (std::int64_t k = 0; k < whole; k += parts) {
#pragma GCC unroll 8
    for (int p = 0; p < parts; ++p) add(sum[p], left + p * P.a_step, right + p * P.b_row);
    left += parts * P.a_step;
    right += parts * P.b_row;
  }
  for (std::int64_t k = whole; k < P.k; ++k) {
    add(sum[0], left, right);
    left += P.a_step;
    right += P.b_row;
  }
#pragma GCC unroll 32
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      V total = sum[0][r][v];
#pragma GCC unroll 8
      for (int p = 1; p < parts; ++p) total += sum[p][r][v];
      if (v + 1 < Vectors)
        put(row + r, column + v * Lanes, std::integral_constant<int, Lanes>{}, total);
      else
        put(row + r, column + v * Lanes, std::integral_constant<int, Last>{}, total);
    }
  }
}

/// All rows of one strip of columns.
template <product_extents P, int Lanes, int Rows, int Vectors, int Last, class T, class Put>
KILN_FN void product_strip(const T* a, const T* b, std::int64_t column, Put&& put) {
  constexpr std::int64_t whole = P.m / Rows * Rows;
  for (std::int64_t row = 0; row < whole; row += Rows)
    product_tile<P, Lanes, Rows, Vectors, Last>(a, b, row, column, put);
  if constexpr (whole != P.m)
    product_tile<P, Lanes, static_cast<int>(P.m - whole), Vectors, Last>(a, b, whole, column, put);
}

/// The whole product. `put(row, column, std::integral_constant<int, N>, vector)` receives each vector of sums once.
template <product_extents P, int Lanes, int Registers, class T, class Put>
KILN_FN void static_product(const T* a, const T* b, Put&& put) {
  constexpr product_tiles t = product_tiles::of(P, Lanes, Registers);
  constexpr std::int64_t even = t.last_vectors == t.vectors && t.last_lanes == Lanes ? t.strips : t.strips - 1;
  for (std::int64_t s = 0; s < even; ++s)
    product_strip<P, Lanes, t.rows, t.vectors, Lanes>(a, b, s * t.vectors * Lanes, put);
  if constexpr (even != t.strips)
    product_strip<P, Lanes, t.rows, t.last_vectors, t.last_lanes>(a, b, even * t.vectors * Lanes, put);
}

}  // namespace kiln::kernels
