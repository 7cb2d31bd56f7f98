#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kiln/kernel/simd/vector.hpp"
#include KILN_MATRIX_UNIT_HEADER

namespace kiln::kernels {

/// The processor's matrix unit, where it has one (Intel AMX): it adds to 16 x 16 sums the products of 16 rows of 32
/// bf16 with 16 columns of as many, in fp32, denormals read as zero (Intel 64 and IA-32 Architectures Optimization
/// Reference Manual, chapter 20). `matrix_unit_session`, `tile_load`, `tile_multiply` and their like are its
/// instructions.
struct matrix_unit {
  static constexpr std::int64_t rows = 16, cols = 16, depth = 32;
  static constexpr std::int64_t tile_values = rows * depth;  // bf16 of one operand's tile

  /// Whether this code may use one: the level has wide vectors to feed it, the processor has it, it is not forbidden,
  /// and the operating system grants its registers to this process. Permission is requested once, at first use, for the
  /// whole process: signal stacks (`sigaltstack`) must then have room for the registers, 8 KiB more.
  static bool available() {
    if (forbidden().load(std::memory_order_relaxed)) return false;
    static const bool is = ask_for_matrix_unit();
    return is;
  }
  /// Likewise whether it multiplies 16 rows of 64 unsigned bytes with 16 columns of as many signed ones, exactly.
  static bool multiplies_bytes() {
    static const bool has = matrix_unit_has_bytes();
    return has && available();
  }
  /// Disables the unit for the process.
  static void forbid() { forbidden() = true; }

 private:
  static std::atomic<bool>& forbidden() {
    static std::atomic<bool> is = false;
    return is;
  }
};

}  // namespace kiln::kernels
