#pragma once

#include "kiln/kernel/int8/requantize.hpp"

namespace kiln::kernels {

/// Floats as bytes: the whole number nearest to x / scale within bounds, plus a zero point; 0 of NaN, as `convert` has
/// it.
struct byte_quantization {
  byte_rounding to;
  std::int32_t zero = 0;
  bool divides = false;  ///< where `to.divide` would round otherwise than a division

  /// Writes whole vectors of bytes: up to `native_lanes<float> - 1` beyond the last one.
  void write(std::uint8_t* out, const float* from, std::int64_t count) const { write_rows(out, 0, from, 0, 1, count); }
  /// The same of rows, so many bytes of each and so many elements apart.
  void write_rows(std::uint8_t* out, std::ptrdiff_t out_row, const float* from, std::ptrdiff_t from_row,
                  std::int64_t rows, std::int64_t count) const {
    constexpr int lanes = native_lanes<float>;
    using V = native_vec<float>;
    const byte_quantization own = *this;  // a store of bytes could change this object, for all that the compiler knows
    const bounds within{broadcast<V>(to.low * to.scale), broadcast<V>(to.high * to.scale)};
    for (std::int64_t r = 0; r < rows; ++r, out += out_row, from += from_row) {
      std::int64_t i = 0;
      for (; i + lanes <= count; i += lanes) store(out + i, own.bytes(load<V>(from + i), within));
      if (i < count) store(out + i, own.bytes(load_n<V>(from + i, static_cast<int>(count - i)), within));
    }
  }

 private:
  // Floats that become the least and the greatest number: what lies beyond them does, too.
  struct bounds {
    native_vec<float> low, high;
  };
  KILN_FN vec<std::uint8_t, native_lanes<float>> bytes(native_vec<float> x, const bounds& within) const {
    using V = native_vec<float>;
    using I = native_vec<std::int32_t>;
    x = elementary::greater(within.low, x);
    x = elementary::lesser(within.high, x);
    const V number = (divides ? x / broadcast<V>(to.scale) : to.divide(x)) + broadcast<V>(byte_rounding::low_bits);
    const I stored = I(number) + broadcast<I>(zero);
    return convert<vec<std::uint8_t, native_lanes<float>>>(number == number ? stored : I{});
  }
};

}  // namespace kiln::kernels
