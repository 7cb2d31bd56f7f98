#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/fwd.hpp"

namespace kiln::detail {

/// While one lives in this thread, `constant_folding` leaves conversions to f32 of large constants of 16-bit floats
/// that only products read, as right operands or as scales of weights in blocks: who makes the kernels then widens one
/// at a time, or none. So it does views that turn large dense matrices which only products and recurrent layers read.
class constants_stay_stored {
 public:
  explicit constants_stay_stored(bool wanted);
  constants_stay_stored(const constants_stay_stored&) = delete;
  constants_stay_stored& operator=(const constants_stay_stored&) = delete;
  ~constants_stay_stored();

 private:
  bool before_;
};

bool constants_stay();

/// Smaller constants are not worth it: bytes of products' operands that are widened; of scales, and of turned matrices.
inline constexpr std::size_t least_late_bytes = 1 << 20, least_late_scales = 1 << 16;

/// Whether an instruction converts such a constant, through views of it, to f32.
bool is_left_to_widen(const module_graph& m, std::uint32_t i);

}  // namespace kiln::detail
