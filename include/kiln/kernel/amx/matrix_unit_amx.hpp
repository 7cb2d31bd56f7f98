#pragma once

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "kiln/config.hpp"

// Intel's Advanced Matrix Extensions, on Linux, in assembly: intrinsics would require enabling the instructions in the
// whole translation unit.

namespace kiln::kernels {

/// Whether the processor multiplies tiles of bf16, and the operating system grants their registers to this process.
inline bool ask_for_matrix_unit() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned bf16 = 1U << 22, tile = 1U << 24;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & bf16) == 0 || (d & tile) == 0) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;  // of arch_prctl
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

/// Whether the processor multiplies tiles of bytes.
inline bool matrix_unit_has_bytes() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned int8 = 1U << 25;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & int8) != 0;
}

/// During its lifetime, the calling thread's eight tile registers have 16 rows of 64 bytes.
class matrix_unit_session {
 public:
  matrix_unit_session() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shapes;
    static_assert(sizeof shapes == 64);
    asm volatile("ldtilecfg %0" ::"m"(shapes));
  }
  ~matrix_unit_session() { asm volatile("tilerelease"); }
  matrix_unit_session(const matrix_unit_session&) = delete;
  matrix_unit_session& operator=(const matrix_unit_session&) = delete;
};

template <int Tile> KILN_FN void tile_zero() { asm volatile("tilezero %%tmm%c0" ::"i"(Tile)); }
/// Rows are `step` bytes apart.
template <int Tile> KILN_FN void tile_load(const void* at, std::ptrdiff_t step) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(at), "r"(step), "i"(Tile) : "memory");
}
template <int Tile> KILN_FN void tile_store(void* at, std::ptrdiff_t step) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(at), "r"(step), "i"(Tile) : "memory");
}
/// Sums += left * right; a row of the right operand holds the pairs of its columns.
template <int Sums, int Left, int Right> KILN_FN void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Left), "i"(Right));
}
/// Sums += left * right of unsigned and signed bytes; a row of the right operand holds four of each of its columns.
template <int Sums, int Left, int Right> KILN_FN void tile_multiply_bytes() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Left), "i"(Right));
}

}  // namespace kiln::kernels
