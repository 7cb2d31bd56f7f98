#pragma once

#include <array>
#include <bit>

#include "kiln/kernel/int8/tile.hpp"
#include "kiln/kernel/quantized/pack.hpp"

namespace kiln::kernels {

/// What codes of finite floats without their sign mean. Below the least exponent the mantissa counts its steps.
KILN_FN native_vec<float> magnitude_of(native_vec<std::uint32_t> code, number_format f) {
  using F = native_vec<float>;
  using U = native_vec<std::uint32_t>;
  using I = native_vec<std::int32_t>;
  const F normal = (F)((code << (23 - f.mantissa)) + (static_cast<std::uint32_t>(127 - f.bias) << 23));
  const auto step = std::bit_cast<float>(static_cast<std::uint32_t>(128 - f.bias - f.mantissa) << 23);
  const F steps = convert<F>((I)code) * step;
  return (I)code < (I)(U{} + (1u << f.mantissa)) ? steps : normal;
}

/// Some columns of a panel of packed weights, as a tile reads them.
struct quantized_columns {
  std::int64_t blocks = 0, words = 0, width = 0;  ///< words of a block, columns of the panel
  const std::uint32_t* data = nullptr;
  const std::byte *scales = nullptr, *zeros = nullptr;
  scale_format scale_type{};
  zero_format zero_type{};
  float zero = 0, factor = 1;
  number_format numbers{};

  /// Columns from `col` on, which a panel's vector begins at.
  quantized_columns(const quantized_form& f, const std::byte* packed, std::int64_t col)
      : blocks(f.blocks()),
        words(f.words()),
        scale_type(f.scales),
        zero_type(f.zeros),
        zero(f.zero),
        factor(f.factor),
        numbers(f.numbers) {
    constexpr std::int64_t full = register_tile<float>::width;
    const quantized_places at(f);
    const std::int64_t first = col / full * full, inside = col - first;
    width = panel_width<float>(first, f.n);
    data = reinterpret_cast<const std::uint32_t*>(packed) + first * blocks * words + inside;
    scales = packed + at.scales + (first * blocks + inside) * size_of_scale(scale_type);
    zeros = packed + at.zeros + (first * blocks + inside) * size_of_zero(zero_type);
  }
  /// The scales of block b in the columns of vector v.
  KILN_FN native_vec<float> scale(std::int64_t b, int v) const {
    using V = native_vec<float>;
    const std::byte* const at = scales + (b * width + v * native_lanes<float>)*size_of_scale(scale_type);
    if (scale_type == scale_format::f16) return load_half<V>(reinterpret_cast<const std::uint16_t*>(at));
    if (scale_type == scale_format::bf16) return load_bfloat16<V>(reinterpret_cast<const std::uint16_t*>(at));
    if (scale_type >= scale_format::e8m0) return scale_of_byte(at);
    return load<V>(reinterpret_cast<const float*>(at));
  }
  KILN_FN native_vec<float> scale_of_byte(const std::byte* at) const {
    using V = native_vec<float>;
    using U = native_vec<std::uint32_t>;
    const auto code =
        convert<U>(load<vec<std::uint8_t, native_lanes<float>>>(reinterpret_cast<const std::uint8_t*>(at)));
    if (scale_type == scale_format::e8m0) return (V)(code << 23);
    return magnitude_of(code, {3, 7});
  }
  /// Their zero points, where each block has its own.
  KILN_FN native_vec<float> zero_points(std::int64_t b, int v) const {
    using V = native_vec<float>;
    const std::byte* const at = zeros + (b * width + v * native_lanes<float>)*size_of_zero(zero_type);
    if (zero_type == zero_format::floats) return load<V>(reinterpret_cast<const float*>(at));
    return convert<V>(load<vec<std::uint8_t, native_lanes<float>>>(reinterpret_cast<const std::uint8_t*>(at)));
  }
};

/// Bytes after the word that is read which are fetched: weights come from far memory in order.
inline constexpr std::ptrdiff_t quantized_ahead = 2048;

/// Rows of the left operand, rounded to bytes for each block.
struct byte_rows {
  const std::int8_t* at = nullptr;  ///< for each word the bytes that meet its lowest fields, then the next ones
  std::ptrdiff_t row = 0;
  const float* scale = nullptr;       ///< of each block
  const std::int32_t* sum = nullptr;  ///< of each block's bytes
  std::ptrdiff_t block_row = 0;
};

/// AVX2's product of bytes: of unsigned numbers of up to 6 bits, so that sums of two fit 16 bits.
struct byte_pairs {
  static constexpr int most_bits = 4;
  template <is_vec V> KILN_FN static V add_products(V sum, V a, V b) {
#if KILN_HAS_MXCSR
    if constexpr (sizeof(V) >= 32) {
      const V ones = broadcast<V>(0x00010001);
      V pairs, fours;
      asm("vpmaddubsw %2, %1, %0" : "=v"(pairs) : "v"(a), "v"(b));
      asm("vpmaddwd %2, %1, %0" : "=v"(fours) : "v"(pairs), "v"(ones));
      return sum + fours;
    }
#endif
    return sum;
  }
};
/// AVX-512 VNNI's.
struct byte_fours : four_bytes {
  static constexpr int most_bits = 8;
};

/// C[r][j] of `Rows` rows and `Vectors` vectors of columns, of which `cols` are stored: products of bytes are summed
/// exactly within a block.
template <class Machine, int Bits, int Rows, int Vectors>
[[gnu::noinline]] void byte_tile(const quantized_columns& w, const byte_rows& x, float* c, std::ptrdiff_t c_row,
                                 int cols) {
  using I = native_vec<std::int32_t>;
  using U = native_vec<std::uint32_t>;
  using F = native_vec<float>;
  constexpr int lanes = native_lanes<float>, fields = 8 / Bits;
  const bool uniform = w.zero_type == zero_format::uniform;
  const auto zero = static_cast<std::int32_t>(w.zero);
  const U mask = broadcast<U>(Bits == 8 ? 0xffffffffu : Bits == 4 ? 0x0f0f0f0fu : 0x03030303u);
  F total[Rows][Vectors] = {};
  const std::uint32_t* data = w.data;
  const std::int8_t* bytes = x.at;
  for (std::int64_t b = 0; b < w.blocks; ++b) {
    I sum[Rows][Vectors];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const I start = broadcast<I>(uniform ? -zero * x.sum[r * x.block_row + b] : 0);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[r][v] = start;
    }
    for (std::int64_t i = 0; i < w.words; ++i) {
      U stored[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        if constexpr (Rows <= 2)
          __builtin_prefetch(reinterpret_cast<const char*>(data + v * lanes) + quantized_ahead, 0, 2);
        stored[v] = load<U>(data + v * lanes);
      }
      data += w.width;
#pragma GCC unroll 4
      for (int f = 0; f < fields; ++f) {
        I right[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) right[v] = (I)((stored[v] >> (f * Bits)) & mask);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) {
          std::int32_t lane;
          __builtin_memcpy(&lane, bytes + r * x.row + f * 4, 4);
          const I left = broadcast<I>(lane);
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) sum[r][v] = Machine::add_products(sum[r][v], right[v], left);
        }
      }
      bytes += fields * 4;
    }
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const F scale = w.scale(b, v);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        F whole = convert<F>(sum[r][v]);
        if (!uniform) whole -= w.zero_points(b, v) * broadcast<F>(static_cast<float>(x.sum[r * x.block_row + b]));
        total[r][v] = multiply_add(whole, scale * broadcast<F>(x.scale[r * x.block_row + b]), total[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      store_n(c + r * c_row + v * lanes, total[r][v], std::min(lanes, cols - v * lanes));
}

/// Numbers of packed weights: unsigned ones of `Bits` bits.
template <int Bits> class unsigned_numbers {
 public:
  using U = native_vec<std::uint32_t>;
  using F = native_vec<float>;
  static constexpr int bits = Bits;

  explicit unsigned_numbers(const quantized_columns& w) : center_(broadcast<F>(center(w))) {
    float of[native_lanes<float>];
    for (int i = 0; i < native_lanes<float>; ++i) of[i] = static_cast<float>(i & ((1 << Bits) - 1)) - center(w);
    table_ = load<F>(of);
  }
  /// What is subtracted from numbers before they are multiplied: their zero point, or near the middle of their range.
  static float center(const quantized_columns& w) {
    return w.zero_type == zero_format::uniform ? w.zero : static_cast<float>(1 << (Bits - 1));
  }
  /// Field p of each word, less the center.
  KILN_FN F operator()(U words, int p) const {
    const U at = words >> (p * Bits);
#if KILN_HAS_MXCSR
    if constexpr (sizeof(F) == 64 && Bits <= 4) {  // the instruction reads the lowest 4 bits of an index
      F value;
      asm("vpermps %2, %1, %0" : "=v"(value) : "v"(at), "v"(table_));
      return value;
    }
#endif
    return convert<F>((native_vec<std::int32_t>)(at & ((1u << Bits) - 1))) - center_;
  }

 private:
  F table_, center_;
};

/// Numbers of packed weights: floats of `Bits` bits, the highest of which is the sign.
template <int Bits> class float_numbers {
 public:
  using U = native_vec<std::uint32_t>;
  using F = native_vec<float>;
  static constexpr int bits = Bits;

  explicit float_numbers(const quantized_columns& w) : format_(w.numbers) {
    if constexpr (Bits == 4) {
      U code;
      for (int i = 0; i < native_lanes<float>; ++i) code[i] = static_cast<std::uint32_t>(i);
      const U sign = table_has_signs ? (code >> 3) << 31 : U{};
      table_ = (F)((U)magnitude_of(code & static_cast<std::uint32_t>(sign_below), format_) | sign);
    }
  }
  static float center(const quantized_columns&) { return 0; }
  /// Field p of each word.
  KILN_FN F operator()(U words, int p) const {
    const U at = words >> (p * Bits), sign = at << (32 - Bits) & 0x80000000u;
#if KILN_HAS_MXCSR
    if constexpr (Bits == 4 && sizeof(F) >= 32) {  // of an index the instruction reads the lowest 4 bits, or 3 of AVX2
      F value;
      asm("vpermps %2, %1, %0" : "=v"(value) : "v"(at), "v"(table_));
      return table_has_signs ? value : (F)((U)value | sign);
    }
#endif
    return (F)((U)magnitude_of(at & static_cast<std::uint32_t>(sign_below), format_) | sign);
  }

 private:
  static constexpr int sign_below = (1 << (Bits - 1)) - 1;
  static constexpr bool table_has_signs = Bits == 4 && native_lanes<float> == 16;
  number_format format_;
  F table_{};
};

/// Rows of the left operand as floats: whole blocks, zeros after the depth.
struct float_rows {
  const float* at = nullptr;
  std::ptrdiff_t row = 0;
  const float* sum = nullptr;  ///< of each block, where zero points are not uniform
  std::ptrdiff_t block_row = 0;
};

/// As `byte_tile`, in floats.
template <class Numbers, int Rows, int Vectors>
[[gnu::noinline]] void float_tile(const quantized_columns& w, const float_rows& x, float* c, std::ptrdiff_t c_row,
                                  int cols) {
  using U = native_vec<std::uint32_t>;
  using F = native_vec<float>;
  constexpr int lanes = native_lanes<float>, each = 32 / Numbers::bits;
  const bool uniform = w.zero_type == zero_format::uniform;
  const float center = Numbers::center(w);
  const Numbers decode(w);
  F total[Rows][Vectors] = {};
  const std::uint32_t* data = w.data;
  const float* left = x.at;
  for (std::int64_t b = 0; b < w.blocks; ++b) {
    F sum[Rows][Vectors] = {};
    for (std::int64_t i = 0; i < w.words; ++i) {
      U stored[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        if constexpr (Rows <= 2)
          __builtin_prefetch(reinterpret_cast<const char*>(data + v * lanes) + quantized_ahead, 0, 2);
        stored[v] = load<U>(data + v * lanes);
      }
      data += w.width;
#pragma GCC unroll 16
      for (int p = 0; p < each; ++p) {
        F right[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) right[v] = decode(stored[v], p);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          const F one = broadcast<F>(left[r * x.row + p]);
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(one, right[v], sum[r][v]);
        }
      }
      left += each;
    }
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const F scale = w.scale(b, v);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        F whole = sum[r][v];
        if (!uniform) {
          const F off = w.zero_points(b, v) - broadcast<F>(center);
          whole -= off * broadcast<F>(x.sum[r * x.block_row + b]);
        }
        total[r][v] = multiply_add(whole, scale, total[r][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      store_n(c + r * c_row + v * lanes, total[r][v] * w.factor, std::min(lanes, cols - v * lanes));
}

/// Blocks [first, first + count) of whole panel columns as floats: row k of the depth at `to + k * w.width`.
template <class Numbers>
[[gnu::noinline]] void dequantize_panel(const quantized_columns& w, std::int64_t first, std::int64_t count, float* to) {
  using U = native_vec<std::uint32_t>;
  using F = native_vec<float>;
  constexpr int lanes = native_lanes<float>, each = 32 / Numbers::bits;
  const bool uniform = w.zero_type == zero_format::uniform;
  const float center = Numbers::center(w);
  const Numbers decode(w);
  for (std::int64_t j = 0; j < w.width; j += lanes) {
    const int v = static_cast<int>(j / lanes);
    for (std::int64_t b = first; b < first + count; ++b) {
      const F scale = w.scale(b, v) * w.factor;
      const F off = uniform ? F{} : w.zero_points(b, v) - broadcast<F>(center);
      const std::uint32_t* data = w.data + b * w.words * w.width + j;
      float* out = to + (b - first) * w.words * each * w.width + j;
      for (std::int64_t i = 0; i < w.words; ++i, data += w.width) {
        const U stored = load<U>(data);
#pragma GCC unroll 16
        for (int p = 0; p < each; ++p, out += w.width) store(out, (decode(stored, p) - off) * scale);
      }
    }
  }
}

/// Rows and vectors of the tiles: one or two rows take a whole panel, since they wait for memory.
inline constexpr int byte_tile_rows = native_bytes == 64 ? 6 : 3, float_tile_rows = native_bytes == 64 ? 4 : 2;
constexpr int quantized_tile_vectors(int rows) { return native_bytes == 64 ? (rows <= 2 ? 4 : 2) : rows <= 2 ? 2 : 1; }

/// Calls `run.operator()<Rows, Vectors>()` with `rows` in [1, Most] and `vectors` in 1, 2 or 4, no more than
/// `quantized_tile_vectors(rows)`.
template <int Most, int Rows = 1, class Run> void with_quantized_tile(int rows, int vectors, Run&& run) {
  if constexpr (Rows <= Most) {
    if (rows != Rows) return with_quantized_tile<Most, Rows + 1>(rows, vectors, run);
    constexpr int most = quantized_tile_vectors(Rows);
    if constexpr (most >= 4)
      if (vectors == 4) return run.template operator()<Rows, 4>();
    if constexpr (most >= 2)
      if (vectors == 2) return run.template operator()<Rows, 2>();
    run.template operator()<Rows, 1>();
  }
}

}  // namespace kiln::kernels
