#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// What the left operand's zero point adds to the sums of an integer product: zero * sums[n], of the sums of the right
/// operand's columns, i32, and one zero point of u8, i8 or i32; result: i32[n], which the caller knows to hold it. No
/// pointwise op, so that no pass repeats it for each row of the product; it is in no registry.
struct zero_point_sums {
  static constexpr auto types =
      dtype_set{1u << static_cast<unsigned>(dtype::u8) | 1u << static_cast<unsigned>(dtype::i8) |
                1u << static_cast<unsigned>(dtype::i32)};

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 2) return detail::wrong_operand_count(2, in.size());
    if (in[0].type != dtype::i32 || in[0].rank() != 1)
      return fault::of(errc::shape_mismatch, "sums of columns", "i32 of one dim", in[0]);
    const bool whole = in[1].type == dtype::u8 || in[1].type == dtype::i8 || in[1].type == dtype::i32;
    if (!whole || in[1].rank() != 0)
      return fault::of(errc::shape_mismatch, "a zero point", "one number of u8, i8 or i32", in[1]);
    return in[0];
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto sums = e.template in<std::int64_t>(0), zero = e.template in<std::int64_t>(1);
    const auto out = e.template out<std::int64_t>();
    for (std::int64_t n = 0; n < out.size(); ++n) out[n] = zero[0] * sums[n];
  }
};

}  // namespace kiln::op
