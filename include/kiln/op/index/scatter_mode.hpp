#pragma once
#include "kiln/op/arithmetic.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// What a scatter does where an update meets an element.
enum class scatter_mode : std::uint8_t { none, add, mul, min, max };

constexpr std::string_view to_string(scatter_mode m) {
  return enumerator_name(m, {"none", "add", "mul", "min", "max"});
}

}  // namespace kiln::op

namespace kiln::detail {

/// What is wrong with the updates' dtype.
constexpr std::optional<fault> update_fault(const shape& data, const shape& updates, op::scatter_mode mode) {
  if (is_object(data.type) && mode != op::scatter_mode::none)
    return fault::of(errc::shape_mismatch, "dtype that elements are combined in", "a number", data.type);
  if (updates.type != data.type)
    return fault::of(errc::shape_mismatch, "updates have the data's dtype", data.type, updates.type);
  return std::nullopt;
}

/// The element after an update; integers wrap; bools add by or, multiply by and. A NaN stays a minimum and a maximum.
template <class T> constexpr T updated(op::scatter_mode mode, T old, T update) {
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
