#pragma once
#include <algorithm>
#include <cstdint>

namespace kiln::kernels {

/// How a reduction combines, and what it makes of an element first.
enum class reduction_kind : std::uint8_t { sum, sum_of_magnitudes, sum_of_squares, product, maximum, minimum };

/// Dense in[outer, extent, inner] folded over its middle to out[outer, inner].
struct reduction_problem {
  reduction_kind kind = reduction_kind::sum;
  std::int64_t outer = 1, extent = 1, inner = 1;
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t divisor = 1;  ///< of the results, where these are floats

  /// Columns of `inner` that one task folds at once, about as many in each block.
  static constexpr std::int64_t most_columns = 1024;
  std::int64_t blocks() const { return inner == 1 ? 1 : (inner + most_columns - 1) / most_columns; }
  std::int64_t columns() const {
    constexpr std::int64_t unit = 16;
    const std::int64_t n = blocks();
    return n <= 1 ? inner : ((inner + n - 1) / n + unit - 1) / unit * unit;
  }
  /// Stretches that the extent is cut into, so that every thread has work: their results are folded at the end.
  std::int64_t stretches(unsigned threads) const {
    constexpr std::int64_t some = 32768;
    const std::int64_t parts = outer * blocks(), wanted = 2 * static_cast<std::int64_t>(threads);
    if (parts == 0 || parts >= wanted || threads == 1) return 1;
    return std::clamp<std::int64_t>(extent * std::min(inner, most_columns) / some, 1, (wanted + parts - 1) / parts);
  }
  /// Elements of scratch.
  std::int64_t scratch(unsigned threads) const {
    const std::int64_t n = stretches(threads);
    return n == 1 ? 0 : outer * n * inner;
  }
};

}  // namespace kiln::kernels
