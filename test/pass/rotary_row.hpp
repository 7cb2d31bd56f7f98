#pragma once
#include "kiln/graph/builder.hpp"

namespace kiln::test {

/// A slice of the last axis.
template <class Value> constexpr Value last_axis(Value x, std::int64_t from, std::int64_t to) {
  return x.slice({.axes = {-1}, .starts = {from}, .ends = {to}});
}

/// RMS normalization of the heads of [batch, positions, heads, depth], as [batch, heads, positions, depth].
template <class Builder> constexpr auto normalized_heads(Builder& b, dtype t, std::int64_t depth, dimension positions) {
  const auto x = b.input("x", t, {2, positions, 5, depth}), w = b.input("w", t, {depth});
  return (x.rms_normalize() * w).transpose({0, 2, 1, 3});
}

/// Then a rotary embedding, as Qwen 3 and Gemma 3 do it with queries and keys.
template <class Builder>
constexpr void rms_norm_and_rotary(Builder& b, dtype t = dtype::f32, std::int64_t depth = 16, dimension positions = 3) {
  const std::int64_t half = depth / 2;
  const auto heads = normalized_heads(b, t, depth, positions);
  const auto cos = b.input("cos", t, {positions, half}), sin = b.input("sin", t, {positions, half});
  const auto a = last_axis(heads, 0, half), c = last_axis(heads, half, depth);
  b.output((a * cos - c * sin).concat(a * sin + c * cos, 3), "rotated");
}

/// The same in Hugging Face's spelling, x * cos + rotate_half(x) * sin, which repeats the angles.
template <class Builder>
constexpr void rms_norm_and_rotate_half(Builder& b, dtype t = dtype::f32, std::int64_t depth = 16,
                                        dimension positions = 3) {
  const std::int64_t half = depth / 2;
  const auto heads = normalized_heads(b, t, depth, positions);
  const auto cos = b.input("cos", t, {positions, depth}), sin = b.input("sin", t, {positions, depth});
  const auto turned = (-last_axis(heads, half, depth)).concat(last_axis(heads, 0, half), -1);
  b.output(heads * cos + turned * sin, "rotated");
}

}  // namespace kiln::test
