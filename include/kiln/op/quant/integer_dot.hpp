#pragma once
#include "kiln/op/derive.hpp"
#include "kiln/op/linear/dot.hpp"

namespace kiln::detail {

/// The faults that products of 8-bit integers share: lhs of u8 or i8, rhs of i8 or, where `any_right`, of either.
constexpr std::optional<fault> integer_product_fault(std::span<const shape> in, bool any_right = false) {
  if (in.size() != 2) return fault::of(errc::invalid_argument, "number of inputs", 2, in.size());
  if (in[0].type != dtype::u8 && in[0].type != dtype::i8)
    return fault::of(errc::unsupported, "dtype of the left operand", "u8 or i8", in[0].type);
  if (in[1].type != dtype::i8 && !(any_right && in[1].type == dtype::u8))
    return fault::of(errc::unsupported, "dtype of the right operand", any_right ? "u8 or i8" : "i8", in[1].type);
  return std::nullopt;
}

}  // namespace kiln::detail

namespace kiln::op {

/// Matrix product of lhs[..., m, k] less `left_zero` and rhs[..., k, n] less `right_zero`, both of u8 or i8, exact in
/// i32: result[..., m, n]. Targets whose kernels multiply bytes write `dot` of widened bytes as this; it is in no
/// registry.
struct integer_dot {
  std::int64_t left_zero = 0, right_zero = 0;
  static constexpr auto types =
      dtype_set{1u << static_cast<unsigned>(dtype::u8) | 1u << static_cast<unsigned>(dtype::i8)};

  constexpr result<contraction> maps(std::span<const shape> in) const {
    if (const auto f = detail::integer_product_fault(in, true)) return *f;
    const shape wide[] = {{dtype::i32, in[0].lens}, {dtype::i32, in[1].lens}};
    return dot{}.maps(wide);
  }
};

}  // namespace kiln::op

namespace kiln::detail {

// The sum of products that other contractions share knows no zero points.
constexpr void evaluate_integer_dot(const op::integer_dot& op, evaluation& e) {
  const auto a = e.in<std::int64_t>(0), b = e.in<std::int64_t>(1);
  const auto out = e.out<std::int64_t>();
  const std::size_t rank = a.rank();
  const std::int64_t rows = a.lens[rank - 2], depth = a.lens[rank - 1], columns = b.lens[rank - 1];
  for (std::int64_t k = 0, n = out.size(); k < n; ++k) {
    const std::int64_t column = k % columns, row = k / columns, matrix = row / rows;
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < depth; ++i)
      sum += (a[row * depth + i] - op.left_zero) * (b[(matrix * depth + i) * columns + column] - op.right_zero);
    out[k] = sum;
  }
}
template <> constexpr void evaluate_as<op::integer_dot, std::int64_t>(const op::integer_dot& op, evaluation& e) {
  evaluate_integer_dot(op, e);
}
template <> constexpr void evaluate_as<op::integer_dot, std::uint64_t>(const op::integer_dot& op, evaluation& e) {
  evaluate_integer_dot(op, e);
}

}  // namespace kiln::detail
