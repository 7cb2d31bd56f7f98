#pragma once

#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/int8/problem.hpp"

namespace kiln::kernels {

/// How 8-bit integers are multiplied: each 32-bit lane of an operand holds `depth` adjacent depth steps, and one step
/// adds their products to the lane's sum without saturation. `offset` is added to signed left elements; the column sums
/// of the right operand compensate for it.
template <class Left, class Right, int Offset> struct integer_machine {
  using left = Left;
  using right = Right;
  static constexpr int depth = 4 / sizeof(Left), offset = Offset;
};

/// Four bytes per lane, unsigned times signed: one instruction of AVX-512 VNNI, or of AVX-VNNI in its own encoding,
/// which compilers accept in assembly at any target level; the caller checks that the processor has it.
template <bool Avx> struct four_bytes_by : integer_machine<std::uint8_t, std::int8_t, 128> {
  template <is_vec V> KILN_FN static V add_products(V sum, V a, V b) {
#if KILN_HAS_MXCSR
    if constexpr (Avx)
      asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    else
      asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#endif
    return sum;
  }
};
using four_bytes = four_bytes_by<false>;

/// Whether the operands of a machine are those of the processor's matrix unit, too: its sums are the same.
template <class Machine>
inline constexpr bool unit_multiplies = std::is_same_v<Machine, four_bytes>&& native_bytes == 64;

/// Two 16-bit numbers per lane, both signed: pmaddwd, which every level has. Its sums of two products are exact.
struct two_words : integer_machine<std::int16_t, std::int16_t, 0> {
  template <is_vec V> KILN_FN static V add_products(V sum, V a, V b) {
#if KILN_HAS_MXCSR
    V products = a;
    if constexpr (sizeof(V) == 16)
      asm("pmaddwd %1, %0" : "+x"(products) : "x"(b));
    else
      asm("vpmaddwd %2, %1, %0" : "=v"(products) : "v"(a), "v"(b));
    return sum + products;
#else
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
  }
};

/// Lanes that k steps of the depth take.
template <class Machine> constexpr std::int64_t integer_words(std::int64_t k) { return ceil_div(k, Machine::depth); }

/// Elements that a packed right operand of k rows and n columns takes: the sums of its columns, then its panels.
template <class Machine> std::int64_t packed_integers_size(std::int64_t k, std::int64_t n) {
  return (integer_words<Machine>(k) + 1) * round_up(n, native_lanes<std::int32_t>);
}

/// Columns of a strip: what the matrix unit reads at a time lies together.
inline constexpr std::int64_t strip_width = 2 * native_lanes<std::int32_t>;

/// Where word w of column j lies in a packed panel of `width` columns and `words` words. A panel is strips, the last
/// one perhaps narrower, each of which is rows of lanes.
constexpr std::int64_t place_in_panel(std::int64_t w, std::int64_t j, std::int64_t width, std::int64_t words) {
  const std::int64_t strip = j / strip_width * strip_width;
  return strip * words + w * std::min(strip_width, width - strip) + j - strip;
}

/// One register tile: the sums over the words of the rows at `row` and one panel, which begin as `shift` or 0, go to
/// `finish.take<Rows, Vectors>(sums, row0, col0, cols)` in registers.
template <class Machine, int Rows, int Vectors, class Finish>
[[gnu::noinline]] void integer_tile(const integer_runs& runs, const std::byte* const* row, const std::int32_t* b,
                                    const std::int32_t* shift, const Finish& finish, std::int64_t row0,
                                    std::int64_t col0, int cols) {
  using V = native_vec<std::int32_t>;
  constexpr int lanes = native_lanes<std::int32_t>;
  V sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    const V first = shift ? load<V>(shift + v * lanes) : V{};
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) sum[r][v] = first;
  }
  constexpr int strip = std::min<int>(strip_width, Vectors * lanes), more = Vectors * lanes - strip;
  const std::int32_t* second = b + strip * runs.count * runs.words;
  const auto* fetch = runs.fetch ? runs.fetch : reinterpret_cast<const std::byte*>(b);
  const std::ptrdiff_t fetch_step = runs.fetch ? runs.fetch_step : 0;
  for (std::int64_t run = 0; run < runs.count; ++run) {
    const std::byte* a[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) a[r] = row[r] + runs.at[run];
    for (std::int64_t w = 0; w < runs.words; ++w) {
      V right[Vectors];
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v)
        right[v] = load<V>(v * lanes < strip ? b + v * lanes : second + v * lanes - strip);
      b += strip, second += more;
      __builtin_prefetch(fetch, 0, 2);
      fetch += fetch_step;
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        std::int32_t lane;
        __builtin_memcpy(&lane, a[r] + w * 4, 4);
        const V left = broadcast<V>(lane);
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) sum[r][v] = Machine::add_products(sum[r][v], left, right[v]);
      }
    }
  }
  finish.template take<Rows, Vectors>(sum, row0, col0, cols);
}

template <class Finish>
using integer_tile_function = void (*)(const integer_runs&, const std::byte* const*, const std::int32_t*,
                                       const std::int32_t*, const Finish&, std::int64_t, std::int64_t, int);

template <class Machine, class Finish, int Vectors, int... Row>
constexpr auto integer_tiles_of(std::integer_sequence<int, Row...>) {
  return std::array<integer_tile_function<Finish>, sizeof...(Row)>{integer_tile<Machine, Row + 1, Vectors, Finish>...};
}

/// The tile function for a row count in [1, register_tile::rows] and a vector count in [1, register_tile::vectors].
template <class Machine, class Finish> integer_tile_function<Finish> find_integer_tile(int rows, int vectors) {
  using tile = register_tile<std::int32_t>;
  constexpr auto counts = std::make_integer_sequence<int, tile::rows>{};
  const auto at = static_cast<std::size_t>(rows - 1);
  if constexpr (tile::vectors == 4) {
    if (vectors == 4) return integer_tiles_of<Machine, Finish, 4>(counts)[at];
    if (vectors == 3) return integer_tiles_of<Machine, Finish, 3>(counts)[at];
  }
  return vectors == 2 ? integer_tiles_of<Machine, Finish, 2>(counts)[at]
                      : integer_tiles_of<Machine, Finish, 1>(counts)[at];
}

}  // namespace kiln::kernels
