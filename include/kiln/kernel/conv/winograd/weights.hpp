#pragma once
#include "kiln/kernel/conv/winograd/transform.hpp"

namespace kiln::kernels {

/// Transforms 3x3 weights for Winograd with tiles of Outputs results: `put(point, value)` takes each of the
/// (Outputs + 2)^2 products' factors.
template <int Outputs, class Put> KILN_FN void filter_weight(const float* w, Put&& put) {
  constexpr std::size_t side = Outputs + 2;
  constexpr auto& rows = winograd_transform<Outputs>::weights;
  for (std::size_t i = 0; i < side; ++i) {
    double half[3];
    for (std::size_t x = 0; x < 3; ++x) {
      half[x] = 0;
      for (std::size_t y = 0; y < 3; ++y) half[x] += rows[i][y] * static_cast<double>(w[3 * y + x]);
    }
    for (std::size_t j = 0; j < side; ++j) {
      double sum = 0;
      for (std::size_t x = 0; x < 3; ++x) sum += rows[j][x] * half[x];
      put(static_cast<std::int64_t>(side * i + j), static_cast<float>(sum));
    }
  }
}

/// Transforms 3x3 weights [filter][channel][row][column] for `static_winograd_nchw`: to[point][channel][filter].
KILN_FN void transform_winograd_weights(const float* from, float* to, std::int64_t filters, std::int64_t channels) {
  for (std::int64_t f = 0; f < filters; ++f)
    for (std::int64_t c = 0; c < channels; ++c)
      filter_weight<2>(from + (f * channels + c) * 9,
                       [&](std::int64_t point, float value) { to[(point * channels + c) * filters + f] = value; });
}

}  // namespace kiln::kernels
