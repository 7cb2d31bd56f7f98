#pragma once
#include "kiln/kernel/winograd_transform.hpp"

namespace kiln::kernels {

/// Transforms 3x3 weights [filter][channel][row][column] for `fixed_filtering`: to[point][channel][filter].
inline void filter_weights(const float* from, float* to, std::int64_t filters, std::int64_t channels) {
  constexpr auto& rows = winograd_transform<2>::weights;
  for (std::int64_t f = 0; f < filters; ++f)
    for (std::int64_t c = 0; c < channels; ++c) {
      const float* const w = from + (f * channels + c) * 9;
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
          double sum = 0;
          for (std::size_t a = 0; a < 3; ++a)
            for (std::size_t b = 0; b < 3; ++b) sum += rows[i][a] * rows[j][b] * static_cast<double>(w[3 * a + b]);
          to[(static_cast<std::int64_t>(4 * i + j) * channels + c) * filters + f] = static_cast<float>(sum);
        }
    }
}

}  // namespace kiln::kernels
