#pragma once
#include <string>
#include <string_view>

#include "kiln/backend/hip/runtime.hpp"

namespace kiln::hip {

/// The instructions that multiply matrices on a device.
enum class matrix_unit : std::uint8_t {
  none,   ///< plain multiply-add
  mfma,   ///< AMD's gfx908, gfx90a, gfx94x
  wmma,   ///< AMD's gfx11
  mma,    ///< NVIDIA's sm_80 and later
  wgmma,  ///< NVIDIA's sm_90, beside mma
};

/// What kernels are chosen and compiled for: a device here, or an absent one by its name.
struct architecture {
  platform on = platform::amd;
  std::string name;  ///< "gfx90a", "sm_90", …: what the compiler is told
  int lanes = 32;    ///< of a wavefront or warp
  int multiprocessors = 64;
  std::size_t shared_bytes = 48 * 1024;  ///< of fast memory that a block may use
  matrix_unit matrices = matrix_unit::none;
  bool chains = false;  ///< a kernel's blocks can start while the one before it ends

  /// By name; an `unsupported` error for a name that is neither gfx… nor sm_….
  static architecture named(std::string_view name);
  static architecture of(platform on, const device_facts& facts);
  /// Bytes of shared memory for each of `blocks` that need `bytes`. Where kernels are chained, blocks that
  /// start early would crowd on the multiprocessors that are free by then; memory they don't use spreads them. Blocks
  /// of a `cluster` have fewer multiprocessors to choose from, since a cluster runs in one group of them.
  std::size_t shared_bytes_apart(std::size_t bytes, std::int64_t blocks, int cluster = 1) const;
};

}  // namespace kiln::hip
