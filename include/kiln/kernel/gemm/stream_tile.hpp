#pragma once

#include "kiln/kernel/gemm/tile.hpp"
#include "kiln/kernel/simd/stored_floats.hpp"

namespace kiln::kernels {

/// Rows of the left operand up to which a GEMM is bound by reading the right one, wherever that is.
inline constexpr int streamed_rows = 4;

/// The same where the right operand comes from beyond a core's own caches, or is stored in narrower floats, which a
/// tile converts in registers: as many as it has.
template <class T> inline constexpr int most_streamed_rows = register_tile<T>::rows;

/// Parts of the depth that a tile of so many rows reads side by side. Far memory serves four streams 6 to 8 % faster
/// than one, and a single row hides the latency of its additions in those of the other parts, in near memory too. Two
/// or three rows have registers for the sums of two parts; four have none for more than their own.
constexpr int streamed_parts(int rows, bool far) { return rows == 1 ? (far ? 4 : 2) : rows <= 3 && far ? 2 : 1; }

/// As `multiply_tile` for up to `most_streamed_rows` rows. The parts of the depth are summed separately; the values of
/// C are added at the end. Where b comes from far (`Far`), each of its lines is prefetched early: that gained 10 % in
/// memory, while from L2 the prefetches cost 20 %. b may be stored in narrower floats, which are converted in
/// registers.
template <class T, int Rows, int Vectors, bool Far, class Step, class Stored>
[[gnu::noinline]] void stream_tile(std::int64_t depth, const T* const* row, Step step, const Stored* b,
                                   std::ptrdiff_t b_step, T* c, std::ptrdiff_t c_step, int cols, bool accumulate) {
  using V = native_vec<T>;
  constexpr int lanes = native_lanes<T>, parts = streamed_parts(Rows, Far);
  // beyond the reach of the hardware prefetcher; less, the more streams there are
  constexpr auto each_bytes = static_cast<std::ptrdiff_t>(sizeof(Stored));
  [[maybe_unused]] constexpr std::ptrdiff_t ahead = 8192 / parts / each_bytes;
  V sum[parts][Rows][Vectors] = {};
  const auto add = [&](int part, std::int64_t k) __attribute__((always_inline)) {
    const std::ptrdiff_t at = step(k);
    const Stored* const from = right_at(b, b_step, step, k);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      if (Far && v * lanes * each_bytes % 64 < lanes * each_bytes) __builtin_prefetch(from + ahead + v * lanes, 0, 2);
      const V right = load_stored<V>(from + v * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) sum[part][r][v] = multiply_add(broadcast<V>(row[r][at]), right, sum[part][r][v]);
    }
  };
  const std::int64_t each = depth / parts;
  for (std::int64_t k = 0; k < each; ++k)
#pragma GCC unroll 4
    for (int i = 0; i < parts; ++i) add(i, k + i * each);
  for (std::int64_t k = parts * each; k < depth; ++k) add(0, k);
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      T* const out = c + r * c_step + v * lanes;
      const int count = v + 1 < Vectors ? lanes : cols - (Vectors - 1) * lanes;
      V total = sum[0][r][v];
#pragma GCC unroll 4
      for (int i = 1; i < parts; ++i) total += sum[i][r][v];
      if (accumulate) total += load_n<V>(out, count);
      store_n(out, total, count);
    }
}

/// A stream tile of `rows` rows, 1 to `most_streamed_rows`, and `vectors` vectors, 1 to `register_tile<T>::vectors`.
template <class T, class Step, class Stored>
void run_stream_tile(int rows, int vectors, std::int64_t depth, const T* const* row, Step step, const Stored* b,
                     std::ptrdiff_t b_step, T* c, std::ptrdiff_t c_step, int cols, bool accumulate, bool far) {
  const auto with = [&]<int Rows, int Vectors>() {
    far ? stream_tile<T, Rows, Vectors, true>(depth, row, step, b, b_step, c, c_step, cols, accumulate)
        : stream_tile<T, Rows, Vectors, false>(depth, row, step, b, b_step, c, c_step, cols, accumulate);
  };
  const auto of_rows = [&]<int Vectors>() {
    if constexpr ((most_streamed_rows<T>) > streamed_rows) {
      if (rows == 5) return with.template operator()<5, Vectors>();
      if (rows == 6) return with.template operator()<6, Vectors>();
    }
    switch (rows) {
      case 1: return with.template operator()<1, Vectors>();
      case 2: return with.template operator()<2, Vectors>();
      case 3: return with.template operator()<3, Vectors>();
      default: return with.template operator()<4, Vectors>();
    }
  };
  if constexpr (register_tile<T>::vectors == 4) {
    if (vectors == 4) return of_rows.template operator()<4>();
    if (vectors == 3) return of_rows.template operator()<3>();
  }
  vectors == 2 ? of_rows.template operator()<2>() : of_rows.template operator()<1>();
}

}  // namespace kiln::kernels
