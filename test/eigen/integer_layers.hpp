#pragma once
#include <gmock/gmock.h>

#include "kiln/op/quant/integer_convolution.hpp"
#include "runtime/compare.hpp"

/// Layers of bytes as models spell them.
namespace kiln::testing {

// The sums are integers: nothing may differ.
inline constexpr tolerance exact{0, 0};

inline value weights(builder& b, dtype t, const dims& lens, double low, double high, unsigned seed = 9) {
  return b.constant(random_argument({t, lens}, seed, low, high).to_literal());
}
// Bytes less a zero point, as MatMulInteger is imported.
inline value centered(builder& b, value x, std::optional<std::int64_t> zero) {
  const value wide = x.convert(dtype::i32);
  return zero ? wide - b.scalar(dtype::i32, *zero) : wide;
}
inline void expect_kernel(const std::function<void(builder&)>& make, std::string_view name) {
  const executable e = compile_eigen(make);
  bool found = false;
  for (const step_info& s : e.report().steps) {
    EXPECT_FALSE(s.fallback) << s.kernel;
    found = found || s.kernel.starts_with(name);
  }
  EXPECT_TRUE(found);
}
inline std::vector<argument> bytes_for(const std::function<void(builder&)>& make, bool extreme) {
  std::vector<argument> in = random_inputs(make, 3, -128, 255);
  for (argument& a : in)
    for (std::int64_t i = 0; extreme && i < a.elements(); ++i) a.data()[i] = std::byte(i % 3 == 0 ? 0x80 : 0xff);
  return in;
}

// QuantizeLinear and DequantizeLinear as they are imported.
inline value quantized(builder& b, value x, float scale, float zero) {
  const value y = (x / scale | op::round{}) + zero;
  return b.add(op::clip{}, y, b.scalar(dtype::f32, 0.F), b.scalar(dtype::f32, 255.F)).convert(dtype::u8);
}
inline value real(builder& b, value q, float scale, std::int64_t zero) {
  return (q.convert(dtype::i32) - b.scalar(dtype::i32, zero)).convert(dtype::f32) * scale;
}

// A convolution of bytes, exact in i32, scaled by column.
inline value scaled_sums(builder& b, value x, std::int64_t zero, const dims& filter, const op::convolution& conv,
                         unsigned seed) {
  const dims columns{filter[0], 1, 1};
  const value w = weights(b, dtype::i8, filter, -128, 127, seed).convert(dtype::i32);
  const value scale = b.constant(random_argument({dtype::f32, columns}, seed + 1, .0005, .001).to_literal());
  const value bias = b.constant(random_argument({dtype::f32, columns}, seed + 2, -1, 1).to_literal());
  return centered(b, x, zero).conv(w, conv).convert(dtype::f32) * scale + bias;
}
}  // namespace kiln::testing
