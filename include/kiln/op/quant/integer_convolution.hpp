#pragma once
#include "kiln/op/linear/convolution.hpp"
#include "kiln/op/quant/integer_dot.hpp"

namespace kiln::op {

/// Cross-correlation of x[n, c, spatial...] of u8 or i8 and w[m, c / group, kernel...] of i8, exact in i32, `outside`
/// standing outside the image (the byte that means 0): result[n, m, out...]. Like `integer_dot` it is in no registry.
struct integer_convolution {
  spatial stride{}, dilation{};
  ints pads{};
  std::int64_t group = 1, outside = 0;
  static constexpr auto types = dtypes::signed_integers;
  static constexpr int typed_input = 1;

  constexpr result<contraction> maps(std::span<const shape> in) const {
    if (const auto f = detail::integer_product_fault(in)) return *f;
    const shape wide[] = {{dtype::i32, in[0].lens}, {dtype::i32, in[1].lens}};
    return convolution{.stride = stride, .dilation = dilation, .pads = pads, .group = group}.maps(wide);
  }
};

}  // namespace kiln::op
