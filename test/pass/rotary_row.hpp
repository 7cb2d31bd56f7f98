#pragma once
#include "kiln/graph/builder.hpp"

namespace kiln::test {

inline constexpr float rotary_signs[] = {-1, 1};

/// RMS normalization of the heads of [batch, positions, heads, depth], then a rotary embedding of [batch, heads,
/// positions, depth], as Qwen 3 and Gemma 3 do it with queries and keys.
template <class Builder>
constexpr void rms_norm_and_rotary(Builder& b, dtype t = dtype::f32, std::int64_t depth = 16, dimension positions = 3) {
  const std::int64_t half = depth / 2;
  const auto x = b.input("x", t, {2, positions, 5, depth}), w = b.input("w", t, {depth});
  const auto cos = b.input("cos", t, {positions, 1, half}), sin = b.input("sin", t, {positions, 1, half});
  const auto sign = b.constant(literal::of<float>({t, {2, 1}}, rotary_signs));
  const auto heads = (x.rms_normalize() * w).transpose({0, 2, 1, 3});
  const auto halves = heads.reshape({2, 5, positions, 2, half});
  const auto turned = b.add(op::reverse{{3}}, halves);
  b.output((halves * cos + turned * sin * sign).reshape({2, 5, positions, depth}), "rotated");
}

}  // namespace kiln::test
