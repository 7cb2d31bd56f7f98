// Floats of eight bits beside the ops' own computations, where there is a device.
#include "hip_kernels/on_device.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/quantize_linear.hpp"

namespace kiln::testing {
namespace {

class float8_on_device : public tile_kernels_on_device {
 protected:
  // [depth, columns], with a scale for each column.
  value weights(builder& b, std::int64_t depth, std::int64_t columns) const {
    const shape numbers(GetParam(), {depth, columns});
    std::vector<float> scales;
    for (std::int64_t i = 0; i < columns; ++i) scales.push_back(0.5f + static_cast<float>(i % 7) / 16);
    return b.add(op::dequantize_linear{1}, b.constant(literal(numbers, constant_bytes(numbers))),
                 b.constant<float>(dtype::f32, {columns}, scales));
  }
  // x as the numbers that are nearest to it, times their scale.
  value stored_and_back(builder& b, const char* name, const dims& lens) const {
    const value x = b.input(name, dtype::f32, lens), scale = b.scalar(dtype::f32, 0.25f);
    return b.add(op::quantize_linear{GetParam(), 0}, x, scale).convert(dtype::f32) * scale.broadcast_to(lens);
  }
};

// The matrix unit drops bits of sums of up to 256 products, so that errors grow with the sum's parts rather than with
// it. Few rows, tiles that are not whole, depths that end within a step, several tiles to a multiprocessor; with an
// epilogue, in f32 and in 16 bits, and with what the next product reads.
TEST_P(float8_on_device, products) {
  struct sizes {
    std::int64_t rows, columns, depth;
  };
  for (const sizes z : {sizes{1, 512, 256},
                        {7, 300, 80},
                        {30, 1000, 1040},
                        {10000, 8, 16},  // a thread sums each result
                        {2, 40, 64},
                        {33, 100, 144},
                        {300, 200, 272},
                        {520, 264, 2064},
                        {3000, 520, 128}}) {
    SCOPED_TRACE(std::to_string(z.rows) + " " + std::to_string(z.columns) + " " + std::to_string(z.depth));
    check(
        [&](builder& b) {
          const value x = stored_and_back(b, "x", {z.rows, z.depth});
          const value y = x.dot(weights(b, z.depth, z.columns)) + b.input("bias", dtype::f32, {z.columns});
          b.output(y.relu());
        },
        6e-3);
    check(
        [&](builder& b) {
          const value x = stored_and_back(b, "x", {z.rows, z.depth});
          const value y = x.dot(weights(b, z.depth, z.columns)).convert(dtype::f16);
          b.output(y + b.input("r", dtype::f16, {z.rows, z.columns}));
        },
        1e-2);
  }
}
// Of sums that only grow the matrix unit would lose what is small beside them: lanes add parts of 128 or 256 depths.
TEST_P(float8_on_device, long_sums_of_one_sign) {
  constexpr std::int64_t rows = 140, columns = 512, depth = 16384;
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < depth * columns; ++i) numbers.push_back(0.5f + static_cast<float>(i * 37 % 7) / 4);
  check(
      [&](builder& b) {
        const value half = b.scalar(dtype::f32, 0.5f), scale = b.scalar(dtype::f32, 0.25f);
        const value x = b.input("x", dtype::f32, {rows, depth}) * half + half;
        const value q = b.add(op::quantize_linear{GetParam(), 0}, x, scale).convert(dtype::f32);
        const value w = b.add(op::dequantize_linear{1}, b.constant<float>(GetParam(), {depth, columns}, numbers),
                              b.constant<float>(dtype::f32, {columns}, std::vector<float>(columns, 0.5f)));
        b.output((q * scale.broadcast_to({rows, depth})).dot(w));
      },
      1e-3);
}
// A batch that shares the matrix, a scale for each row that the run gives, rows that lie apart.
TEST_P(float8_on_device, batches_and_rows) {
  check(
      [&](builder& b) {
        const value q = b.input("q", GetParam(), {2, 70, 80});
        const value x = q.convert(dtype::f32) * b.input("scale", dtype::f32, {2, 70, 1}).broadcast_to({2, 70, 80});
        b.output(x.dot(weights(b, 80, 96).broadcast_to({2, 80, 96})));
        const value part = q.slice({{1}, {1}, {70}, {}}).convert(dtype::f32);
        b.output(part.dot(weights(b, 80, 96).broadcast_to({2, 80, 96})));
      },
      6e-3);
}
// Every code as a float, and floats about every boundary as codes.
TEST_P(float8_on_device, conversions) {
  const dtype t = GetParam();
  std::vector<float> x = {0,    -0.0f, NAN,      -NAN,  INFINITY, -INFINITY, 464,   464.0001f,
                          -465, 448,   61439.9f, 61440, -61440,   1e30f,     1e-30f};
  for (int e = -20; e < 17; ++e)
    for (int step = 0; step < 64; ++step)
      for (const float sign : {1.0f, -1.0f}) x.push_back(sign * std::ldexp(1 + static_cast<float>(step) / 64, e));
  const shape floats(dtype::f32, {static_cast<std::int64_t>(x.size())}), codes(t, {256});
  argument given(floats), all(codes);
  encode(dtype::f32, x.data(), given.data(), given.elements());
  for (int i = 0; i < 256; ++i) all.data()[i] = static_cast<std::byte>(i);
  const auto make = [&](builder& b) {
    b.output(b.input("x", dtype::f32, floats.lens).convert(t));
    b.output(b.input("codes", t, codes.lens).convert(dtype::f32));
  };
  const std::vector<argument> inputs{given, all};
  builder b;
  make(b);
  const auto found = compile(b.finish(), hip_target(), plain_options()).run(inputs);
  const auto expected = reference_run(make, inputs);
  // a number that is none has no sign that counts
  const auto none = [&](std::byte code) {
    return std::isnan(reinterpret_cast<const float*>(expected[1].data())[static_cast<int>(code)]);
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::byte to = found[0].data()[i], wanted = expected[0].data()[i];
    EXPECT_TRUE(to == wanted || (none(to) && none(wanted))) << x[i];
  }
  const auto* const a = reinterpret_cast<const float*>(found[1].data());
  const auto* const e = reinterpret_cast<const float*>(expected[1].data());
  for (int i = 0; i < 256; ++i) EXPECT_TRUE(a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) << i;
}

INSTANTIATE_TEST_SUITE_P(types, float8_on_device, ::testing::Values(dtype::f8e4m3fn, dtype::f8e5m2),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace kiln::testing
