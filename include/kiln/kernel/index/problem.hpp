#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::kernels {

/// Indices of elements or slices: i64 where `wide`, else i32.
struct index_list {
  const void* at = nullptr;
  bool wide = true;

  std::int64_t operator[](std::int64_t k) const {
    return wide ? static_cast<const std::int64_t*>(at)[k] : static_cast<const std::int32_t*>(at)[k];
  }
};

/// Elements that indices name one by one along an axis: that of index j lies at
/// place * step + j % inner + j / length * region.
struct element_indices {
  index_list list;
  std::int64_t inner = 1;   ///< indices after the axis
  std::int64_t step = 1;    ///< elements from one place along the axis to the next
  std::int64_t extent = 0;  ///< of the axis
  std::int64_t length = 1;  ///< indices of a stretch
  std::int64_t region = 0;  ///< elements from one stretch's to the next one's
};

/// Indices whose positions are found at once.
inline constexpr std::int64_t index_block = 512;

/// `updates`, slices of `slice` elements, at the places `at` (in slices) of `to`: those in [low, high), which are all
/// of them where `all`, in order.
struct slice_updates {
  std::byte* to = nullptr;
  const std::byte* updates = nullptr;
  const std::int64_t* at = nullptr;
  std::int64_t count = 0, slice = 1;
  std::int64_t low = 0, high = 0;
  bool all = false;
};

/// Running sums or products of x[outer, extent, inner] along the middle dim: of the elements up to each one, or before
/// it where `exclusive`; from the end where `reverse`. Floats are accumulated in double, integers wrap.
struct scan_problem {
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t outer = 1, extent = 1, inner = 1;
  bool exclusive = false, reverse = false;
};

/// The places of the greatest, or least, of x[outer, extent, inner] along the middle dim: the first of equals, or the
/// last. A NaN is chosen before any number.
struct extreme_problem {
  const void* x = nullptr;
  std::int64_t* places = nullptr;
  std::int64_t outer = 1, extent = 1, inner = 1;
  bool least = false, last = false;
};

/// The k greatest, or least, of x[outer, extent, inner] along the middle dim, best first, and their places. Of equal
/// elements the first one comes first; a NaN is greater than any number.
struct top_problem {
  const void* x = nullptr;
  void* values = nullptr;
  std::int64_t* places = nullptr;
  std::int64_t outer = 1, extent = 1, inner = 1, k = 1;
  bool largest = true;

  /// Into how many stretches a row is cut, of which threads find the best.
  std::int64_t stretches(unsigned threads) const {
    const std::int64_t n = 2 * static_cast<std::int64_t>(threads);
    return outer * inner < threads && extent >= 32768 && k * 8 * n <= extent ? n : 1;
  }
};

}  // namespace kiln::kernels
