#pragma once

#include <algorithm>

#include "kiln/kernel/conv/depthwise_3x3.hpp"
#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/pool/fold.hpp"

namespace kiln::kernels {

/// NCHW pooling by windows of 2x2 or 3x3 at a column stride of 1 or 2: the rows of a window are combined as vectors of
/// adjacent columns, and two or three of these, shuffled, are a vector of outputs; nothing goes through memory.
template <bool Average> class narrow_pooling {
  using V = native_vec<float>;
  using fold = pooling_fold<Average>;
  static constexpr int lanes = native_lanes<float>;
  static constexpr std::int64_t most = 512;  // columns of the output

 public:
  static bool serves(const pooling_problem& p) {
    return has_masked_loads && p.input[0] == 1 && p.output[0] == 1 && p.window[0] == 1 && p.pad_begin[0] == 0 &&
           p.pad_end[0] == 0 && p.window[1] == p.window[2] && (p.window[2] == 2 || p.window[2] == 3) &&
           p.dilation[1] == 1 && p.dilation[2] == 1 && p.stride[2] >= 1 && p.stride[2] <= 2 && p.output[2] <= most;
  }

  explicit narrow_pooling(const pooling_problem& p) : p_(p) {
    const std::int64_t vectors = ceil_div(p.output[2], lanes) * p.stride[2] + 1;
    for (std::int64_t k = 0; k < vectors; ++k)
      inside_[k] = static_cast<std::uint16_t>(inside_lanes<float>(k * lanes - p.pad_begin[2], p.input[2]));
    for (std::int64_t w = 0; Average && w < p.output[2]; ++w)
      divisor_[w] = pool_divisor(pool_window(p, 2, w).counted());
  }

  void run(std::int64_t plane) const {
    const float* const x = p_.plane_of_x(plane) - p_.pad_begin[2];
    float* const y = p_.plane_of_y(plane);
    if (p_.stride[2] == 1)
      p_.window[2] == 2 ? rows<1, 2>(x, y) : rows<1, 3>(x, y);
    else
      p_.window[2] == 2 ? rows<2, 2>(x, y) : rows<2, 3>(x, y);
  }

 private:
  template <int Stride, int Window> void rows(const float* x, float* out) const {
    const std::int64_t width = p_.output[2];
    const V none = broadcast<V>(fold::neutral);
    for (std::int64_t h = 0; h < p_.output[1]; ++h, out += width) {
      const std::int64_t top = h * p_.stride[1] - p_.pad_begin[1];
      const float* row[Window];
      unsigned keep[Window];
#pragma GCC unroll 3
      for (int r = 0; r < Window; ++r) {
        keep[r] = top + r >= 0 && top + r < p_.input[1] ? 0xffff : 0;
        row[r] = x + (top + r) * p_.input[2];
      }
      // The window's rows at a vector of columns, combined.
      const auto column = [&](std::int64_t k) __attribute__((always_inline)) {
        const unsigned mask = inside_[k];
        V sum = load_masked_or<float>(row[0] + k * lanes, mask & keep[0], none);
#pragma GCC unroll 3
        for (int r = 1; r < Window; ++r)
          sum = fold::combine(sum, load_masked_or<float>(row[r] + k * lanes, mask & keep[r], none));
        return sum;
      };
      const V divisor = broadcast<V>(Average ? pool_divisor(pool_window(p_, 1, h).counted()) : 1);
      V first = column(0);
      for (std::int64_t w = 0, k = 0; w < width; w += lanes, k += Stride) {
        const int count = static_cast<int>(std::min<std::int64_t>(lanes, width - w));
        V sum;
        [&]<int... Lane>(std::integer_sequence<int, Lane...>) __attribute__((always_inline)) {
          const V second = column(k + 1);
          if constexpr (Stride == 1) {
            sum = fold::combine(first, (V)__builtin_shufflevector(first, second, (Lane + 1)...));
            if (Window == 3) sum = fold::combine(sum, (V)__builtin_shufflevector(first, second, (Lane + 2)...));
            first = second;
          } else {
            const V even = (V)__builtin_shufflevector(first, second, (2 * Lane)...);
            sum = fold::combine(even, (V)__builtin_shufflevector(first, second, (2 * Lane + 1)...));
            // only the last lane and the next vector of outputs read it
            if (count == lanes) first = column(k + 2);
            if (Window == 3) sum = fold::combine(sum, (V)__builtin_shufflevector(even, first, (Lane + 1)...));
          }
        }
        (std::make_integer_sequence<int, lanes>{});
        if constexpr (Average) sum /= divisor * load_n<V>(divisor_ + w, count);
        if (count == lanes)
          store(out + w, sum);
        else
          store_n(out + w, sum, count);
      }
    }
  }

  const pooling_problem& p_;
  std::uint16_t inside_[most / lanes * 2 + 1];  // lanes of each vector of columns that are not padding
  float divisor_[Average ? most : 1];           // the columns that a mean counts
};

}  // namespace kiln::kernels
