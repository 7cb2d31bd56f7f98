#include "kiln/quantize/fp8.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/quantize/float_blocks.hpp"
#include "peer/compare.hpp"
#include "runtime/compare.hpp"

// Files with floats of few bits are what ONNX Runtime computes.
namespace kiln::peer {
namespace {

using namespace quantize;

program network() {
  builder b;
  const auto weights = [&](const dims& lens, unsigned seed) {
    return b.constant(testing::random_argument({dtype::f32, lens}, seed).to_literal());
  };
  const value x = b.input("x", dtype::f32, {2, 3, 6, 6});
  const value y = x.conv(weights({4, 3, 3, 3}, 1)).add_along(1, weights({4}, 2)).relu();
  b.output(y.reshape({2, 64}).dot(weights({64, 80}, 3)) + weights({80}, 4), "y");
  return prepared(b.finish());
}
argument image(unsigned seed) { return testing::random_argument({dtype::f32, {2, 3, 6, 6}}, seed); }
ranges known(const program& p) {
  return calibrate(p, float_values(p), eigen_target(), [seed = 7u]() mutable -> std::optional<sample> {
    if (seed == 9) return std::nullopt;
    return sample{{"x", image(seed++)}};
  });
}
void expect_alike(const program& p, double tolerance) {
  const std::string bytes = onnx::export_model(p);
  compare_with_peer(std::as_bytes(std::span(bytes.data(), bytes.size())), ".", {{{"x", image(7)}}, {{"x", image(20)}}},
                    tolerance);
}

// Values that lie halfway between two codes may be rounded apart: a step of one value changes an output by about 2 %
// of a product, of which there are 64.
TEST(fp8_files, every_type_is_computed_alike) {
  const program p = network();
  for (const dtype t : float8_types)
    for (const bool per_channel : {true, false}) {
      SCOPED_TRACE(std::string(to_string(t)));
      expect_alike(to_fp8(p, known(p), {.type = t, .per_channel = per_channel}).graph, 1e-3);
    }
}
TEST(fp8_files, integers_of_other_widths_are_computed_alike) {
  const program p = network();
  for (const dtype values : {dtype::u16, dtype::i16, dtype::u8, dtype::i8})
    for (const bool bias : {true, false}) {
      SCOPED_TRACE(std::string(to_string(values)));
      const bool wide = bits_of(values) == 16;
      const int8_options how{.activations = values, .weights = {.type = wide ? dtype::i16 : dtype::i8}, .bias = bias};
      expect_alike(to_int8(p, known(p), how).graph, wide ? 1e-4 : 2e-2);
    }
}

}  // namespace
}  // namespace kiln::peer
