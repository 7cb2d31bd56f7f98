#pragma once
#include "kiln/op/linear/dot.hpp"

namespace kiln::detail {

/// The faults that products of 8-bit integers share: lhs of u8 or i8, rhs of i8.
constexpr std::optional<fault> integer_product_fault(std::span<const shape> in) {
  if (in.size() != 2) return fault::of(errc::invalid_argument, "number of inputs", 2, in.size());
  if (in[0].type != dtype::u8 && in[0].type != dtype::i8)
    return fault::of(errc::unsupported, "dtype of the left operand", "u8 or i8", in[0].type);
  if (in[1].type != dtype::i8) return fault::of(errc::unsupported, "dtype of the right operand", "i8", in[1].type);
  return std::nullopt;
}

}  // namespace kiln::detail

namespace kiln::op {

/// Matrix product of lhs[..., m, k] of u8 or i8 and rhs[..., k, n] of i8, exact in i32: result[..., m, n]. Targets
/// whose kernels multiply bytes write `dot` of widened bytes as this; it is in no registry.
struct integer_dot {
  static constexpr auto types = dtypes::signed_integers;
  static constexpr int typed_input = 1;

  constexpr result<contraction> maps(std::span<const shape> in) const {
    if (const auto f = detail::integer_product_fault(in)) return *f;
    const shape wide[] = {{dtype::i32, in[0].lens}, {dtype::i32, in[1].lens}};
    return dot{}.maps(wide);
  }
};

}  // namespace kiln::op
