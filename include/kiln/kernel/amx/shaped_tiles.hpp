#pragma once

#include <array>
#include <cstdint>

#include "kiln/kernel/amx/matrix_unit.hpp"

namespace kiln::kernels {

/// Rows of a tile register of the matrix unit, and their bytes.
struct tile_shape {
  std::int64_t rows = 16, bytes = 64;
};

/// As `matrix_unit_session`, with a shape for each of the registers: fewer rows take less time, and a depth that ends
/// sooner needs no zeros.
class shaped_unit_session {
 public:
  explicit shaped_unit_session(const std::array<tile_shape, 8>& shape) {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shapes;
    static_assert(sizeof shapes == 64);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      shapes.row_bytes[i] = static_cast<std::uint16_t>(shape[i].bytes);
      shapes.rows[i] = static_cast<std::uint8_t>(shape[i].rows);
    }
#if KILN_HAS_MXCSR
    asm volatile("ldtilecfg %0" ::"m"(shapes));
#endif
  }
  ~shaped_unit_session() {
#if KILN_HAS_MXCSR
    asm volatile("tilerelease");
#endif
  }
  shaped_unit_session(const shaped_unit_session&) = delete;
  shaped_unit_session& operator=(const shaped_unit_session&) = delete;
};

/// As `tile_multiply_bytes`, of signed bytes, or of signed bytes on the left and unsigned ones on the right.
template <int Sums, int Left, int Right, bool RightIsSigned> KILN_FN void tile_multiply_signed_bytes() {
#if KILN_HAS_MXCSR
  if constexpr (RightIsSigned)
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Left), "i"(Right));
  else
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Left), "i"(Right));
#endif
}

}  // namespace kiln::kernels
