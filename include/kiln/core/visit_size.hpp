#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln {

/// Calls `f` with an unsigned integer of as many bytes as an element has (1, 2, 4, else 8): for what moves bits
/// whatever they mean.
template <class F> constexpr decltype(auto) visit_size(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(std::uint8_t());
    case 2: return f(std::uint16_t());
    case 4: return f(std::uint32_t());
    default: return f(std::uint64_t());
  }
}

}  // namespace kiln
