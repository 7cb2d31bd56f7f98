#pragma once
#include "kiln/op/arithmetic.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// What a scatter does where an update meets an element.
enum class scatter_mode : std::uint8_t { none, add, mul, min, max };

constexpr std::string_view to_string(scatter_mode m) {
  constexpr std::string_view names[] = {"none", "add", "mul", "min", "max"};
  return names[static_cast<unsigned>(m)];
}

}  // namespace kiln::op

namespace kiln::detail {

/// The element after an update; integers wrap; bools add by or, multiply by and. A NaN stays a minimum and a maximum.
template <class T>
constexpr T updated(op::scatter_mode mode, T old, T update) {
  using op::scatter_mode;
  if (mode == scatter_mode::none) return update;
  if constexpr (std::is_same_v<T, bool>) {
    return mode == scatter_mode::add || mode == scatter_mode::max ? old || update : old && update;
  } else if constexpr (std::is_same_v<T, dimension>) {
    return mode == scatter_mode::add   ? old + update
           : mode == scatter_mode::mul ? old * update
           : mode == scatter_mode::min ? smaller(old, update)
                                       : larger(old, update);
  } else {
    if (mode == scatter_mode::add) return wrapping_add(old, update);
    if (mode == scatter_mode::mul) return wrapping_mul(old, update);
    if (update != update) return update;
    return (mode == scatter_mode::min ? update < old : update > old) ? update : old;
  }
}

}  // namespace kiln::detail
