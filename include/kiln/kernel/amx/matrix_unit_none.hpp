#pragma once

#include <cstddef>

#include "kiln/config.hpp"

// Where kiln knows no matrix unit, only code that never runs calls these.

namespace kiln::kernels {

inline bool ask_for_matrix_unit() { return false; }
inline bool matrix_unit_has_bytes() { return false; }
struct matrix_unit_session {
  matrix_unit_session() {}  // avoids warnings about unused variables
};
template <int Tile> KILN_FN void tile_zero() {}
template <int Tile> KILN_FN void tile_load(const void*, std::ptrdiff_t) {}
template <int Tile> KILN_FN void tile_store(void*, std::ptrdiff_t) {}
template <int Sums, int Left, int Right> KILN_FN void tile_multiply() {}
template <int Sums, int Left, int Right> KILN_FN void tile_multiply_bytes() {}

}  // namespace kiln::kernels
