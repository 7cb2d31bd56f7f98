#pragma once
#include "kiln/op/index/common.hpp"
#include "kiln/op/quant/integer_dot.hpp"

namespace kiln::op {

/// Matrix product of lhs[..., m, k] of u8 or i8, less a zero point of its type that is one number, and rhs[..., k, n]
/// of u8 or i8, exact in i32: result[..., m, n] (ONNX MatMulInteger). The pass expand_quantization writes it as `dot`
/// of widened bytes; it is in no registry.
struct centered_dot {
  static constexpr auto types =
      dtype_set{1u << static_cast<unsigned>(dtype::u8) | 1u << static_cast<unsigned>(dtype::i8)};

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 3) return detail::wrong_operand_count(3, in.size());
    const auto product = integer_dot{}.maps(in.first(2));
    if (!product) return product.why();
    if (in[2].type != in[0].type || in[2].rank() != 0)
      return fault::of(errc::shape_mismatch, "the zero point is one number of the left operand's type", in[0].type,
                       in[2]);
    return shape{dtype::i32, product->out_lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto a = e.template in<std::int64_t>(0), b = e.template in<std::int64_t>(1),
               zero = e.template in<std::int64_t>(2);
    const auto out = e.template out<std::int64_t>();
    const std::size_t rank = a.rank();
    const std::int64_t rows = a.lens[rank - 2], depth = a.lens[rank - 1], columns = b.lens[rank - 1];
    for (std::int64_t k = 0, n = out.size(); k < n; ++k) {
      const std::int64_t column = k % columns, row = k / columns, matrix = row / rows;
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < depth; ++i)
        sum += (a[row * depth + i] - zero[0]) * b[(matrix * depth + i) * columns + column];
      out[k] = sum;
    }
  }
};

}  // namespace kiln::op
