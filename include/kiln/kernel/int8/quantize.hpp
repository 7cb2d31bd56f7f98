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
  void write(std::uint8_t* out, const float* from, std::int64_t count) const {
    constexpr int lanes = native_lanes<float>;
    using V = native_vec<float>;
    const byte_quantization own = *this;  // a store of bytes could change this object, for all that the compiler knows
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store(out + i, own.bytes(load<V>(from + i)));
    if (i < count) store(out + i, own.bytes(load_n<V>(from + i, static_cast<int>(count - i))));
  }

 private:
  KILN_FN vec<std::uint8_t, native_lanes<float>> bytes(native_vec<float> x) const {
    using V = native_vec<float>;
    using I = native_vec<std::int32_t>;
    // beyond these, quotients may not be finite
    x = elementary::greater(broadcast<V>((to.low - 1) * to.scale), x);
    x = elementary::lesser(broadcast<V>((to.high + 1) * to.scale), x);
    const V number = divides ? to.bounded(x / broadcast<V>(to.scale)) : to.rounded(x);
    const I stored = I(number) + broadcast<I>(zero);
    return convert<vec<std::uint8_t, native_lanes<float>>>(number == number ? stored : I{});
  }
};

}  // namespace kiln::kernels
