#pragma once

#include <algorithm>
#include <bit>

#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/int8/requantize.hpp"
#include "kiln/op/pointwise/clip.hpp"
#include "kiln/op/pointwise/round.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// The least and the greatest of some floats and 0; NaN is passed over.
struct float_range {
  float low = 0, high = 0;

  constexpr void widen(const float_range& by) {
    low = by.low < low ? by.low : low;
    high = by.high > high ? by.high : high;
  }
};

inline float_range range_of(const float* from, std::int64_t count) {
  using V = native_vec<float>;
  constexpr int lanes = native_lanes<float>, together = 4;
  V low[together] = {}, high[together] = {};
  const auto take = [&](int k, V x) __attribute__((always_inline)) {
    low[k] = elementary::lesser(x, low[k]);
    high[k] = elementary::greater(x, high[k]);
  };
  std::int64_t i = 0;
  for (; i + together * lanes <= count; i += together * lanes)
#pragma GCC unroll 4
    for (int k = 0; k < together; ++k) take(k, load<V>(from + i + k * lanes));
  for (; i + lanes <= count; i += lanes) take(0, load<V>(from + i));
  if (i < count) take(0, load_n<V>(from + i, static_cast<int>(count - i)));  // lanes beyond are 0
  float_range all;
  for (int k = 0; k < together; ++k)
    for (int j = 0; j < lanes; ++j) all.widen({low[k][j], high[k][j]});
  return all;
}

/// Floats as u8 by their own range, as `op::dynamic_quantize_linear` computes them, bit by bit.
class dynamic_quantization {
 public:
  float scale = 1;
  std::uint8_t zero = 0;

  explicit dynamic_quantization(const float_range& of) {
    const float range = (of.high - of.low) / 255.F;
    scale = range == 0 ? 1 : range;
    const float shift = op::clip{}(op::round{}(-of.low / scale), 0.F, 255.F);
    shift_ = shift;
    zero = shift == shift ? static_cast<std::uint8_t>(shift) : std::uint8_t{0};
    to_.scale = scale, to_.inverse = 1 / scale;
    to_.low = -shift, to_.high = 255.F - shift;
  }

  /// Whether `byte_rounding::divide` gives the whole numbers of at most 8 bits that division gives. Before its last
  /// rounding its quotient is within 2^-46 of x / scale, relatively: the product with the inverse is within 2^-23, and
  /// the step leaves 2^-23 of that. So it differs from x / scale, rounded, only where this lies next to the middle of
  /// two floats, and a whole number changes only if one of the two is an edge k + 1/2. Let the edge be J = (2 k + 1)
  /// 2^s last places, s >= 15, the middle J -+ 1/2, and B and A the integers of scale's and x's 24 bits. Then |A 2^t -
  /// (2 J -+ 1) B| < 9 for some t >= 24, and it is not 0, for the odd 2 J -+ 1 has more bits than A. Modulo 2^16 that
  /// is |B| < 9, which few scales are.
  static constexpr bool rounds_as_division(float scale) {
    constexpr float greatest = 0x1p60F, least = 0x1p-60F;  // no step leaves the range of normal numbers
    constexpr std::uint32_t near = 9, low_bits = 0xffff;
    return scale > least && scale < greatest && ((std::bit_cast<std::uint32_t>(scale) + near) & low_bits) > 2 * near;
  }

  /// Writes `count` bytes of floats within the range.
  void write(std::uint8_t* out, const float* from, std::int64_t count) const {
    if (rounds_as_division(scale))
      write_as<true>(out, from, count);
    else
      write_as<false>(out, from, count);
  }

 private:
  using floats = native_vec<float>;
  using integers = native_vec<std::int32_t>;
  static constexpr int lanes = native_lanes<float>;
  using bytes = vec<std::uint8_t, lanes>;

  template <bool ByStep> void write_as(std::uint8_t* out, const float* from, std::int64_t count) const {
    const dynamic_quantization own =
        *this;  // a store of bytes could change this object, for all that the compiler knows
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store(out + i, own.bytes_of<ByStep>(load<floats>(from + i)));
    if (i == count) return;
    const bytes rest = own.bytes_of<ByStep>(load_n<floats>(from + i, static_cast<int>(count - i)));
    for (int k = 0; i < count; ++i, ++k) out[i] = rest[k];
  }
  template <bool ByStep> KILN_FN bytes bytes_of(floats x) const {
    if constexpr (ByStep) {
      const floats number = to_.rounded(x);
      const integers stored = integers(number) + broadcast<integers>(zero);
      return convert<bytes>(number == number ? stored : integers{});
    } else {
      const floats number = op::clip{}(op::round{}(x / broadcast<floats>(scale)) + broadcast<floats>(shift_), floats{},
                                       broadcast<floats>(255.F));
      return convert<bytes>(convert<integers>(number == number ? number : floats{}));
    }
  }

  float shift_ = 0;  // the zero point, or NaN
  byte_rounding to_;
};

/// How many floats are a task of `quantize_by_range`, whole vectors.
inline std::int64_t range_task(std::int64_t count, unsigned workers) {
  constexpr std::int64_t least = 4096, most = 65536;
  return round_up(std::clamp(ceil_div(count, std::int64_t{4} * workers), least, most), native_lanes<float>);
}
inline std::int64_t range_tasks(std::int64_t count, unsigned workers) {
  return std::max<std::int64_t>(1, ceil_div(count, range_task(count, workers)));
}
/// Bytes of scratch that it takes.
inline std::int64_t range_scratch(std::int64_t count, unsigned workers) {
  return range_tasks(count, workers) * static_cast<std::int64_t>(sizeof(float_range));
}

/// `count` floats as u8 by their range, with its scale and zero point (op::dynamic_quantize_linear). The threads find
/// the ranges of parts first; each part's bytes are made by the thread whose cache has its floats.
inline void quantize_by_range(thread_pool& pool, const float* from, std::int64_t count, std::uint8_t* to, float* scale,
                              std::uint8_t* zero, std::byte* scratch) {
  const std::int64_t each = range_task(count, pool.size()), tasks = range_tasks(count, pool.size());
  auto* const found = reinterpret_cast<float_range*>(scratch);
  const auto part = [&](std::int64_t task) { return std::min(each, count - task * each); };
  const auto make = [&](std::int64_t task) {
    float_range all;  // in the task, where denormals count as they do in its floats
    for (std::int64_t k = 0; k < tasks; ++k) all.widen(found[k]);
    const dynamic_quantization by(all);
    by.write(to + task * each, from + task * each, part(task));
    if (task == 0) *scale = by.scale, *zero = by.zero;
  };
  if (tasks == 1)
    return pool.parallel_for(1, [&](std::int64_t, unsigned) {
      found[0] = range_of(from, count);
      make(0);
    });
  pool.parallel_for(tasks,
                    [&](std::int64_t task, unsigned) { found[task] = range_of(from + task * each, part(task)); });
  pool.parallel_for(tasks, [&](std::int64_t task, unsigned) { make(task); });
}

}  // namespace kiln::kernels
