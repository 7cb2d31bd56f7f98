// What is stored in floats of 16 or 8 bits or in bytes is read so: weights of products, and keys and values.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

value rounded_weights(builder& b, dtype to, const dims& lens) {
  return b.constant(literal::of<float>({dtype::f32, lens}, random_argument({to, lens}, 9, -.5, .5).to<float>()));
}

std::string first_kernel(const std::function<void(builder&)>& make) {
  return compile_eigen(make).report().steps[0].kernel;
}

TEST(stored_floats, products_pack_weights_of_16_bits_so) {
  for (const dtype t : {dtype::f16, dtype::bf16})
    for (const std::int64_t rows : {1, 3, 20}) {
      SCOPED_TRACE(::testing::Message() << to_string(t) << ", " << rows << " rows");
      const auto make = [&](builder& b) {
        b.output(b.input("x", dtype::f32, {rows, 700}).dot(rounded_weights(b, t, {700, 900})).relu());
      };
      expect_same(make, tolerance{2e-5, 2e-5});
      const executable e = compile_eigen(make);
      EXPECT_THAT(e.report().steps[0].kernel, HasSubstr(std::string("packed, ") + std::string(to_string(t))));
      EXPECT_LE(e.report().packed_bytes, 700u * 912 * 2);
    }
}

TEST(stored_floats, weights_of_32_bits_stay_so) {
  EXPECT_EQ(
      first_kernel([](builder& b) {
        std::vector<float> w(700 * 900, .5F);
        w.back() = .1F;  // no float of 16 bits
        b.output(b.input("x", dtype::f32, {1, 700}).dot(b.constant(literal::of<float>({dtype::f32, {700, 900}}, w))));
      }),
      "dot (packed)");
}

// Past keys and values in `t`, with the new ones behind them.
std::function<void(builder&)> step(dtype t, std::int64_t queries, const dims& scale) {
  return [=](builder& b) {
    const value q = b.input("q", dtype::f32, {2, 6, queries, 24});
    const auto cached = [&](const std::string& name, std::int64_t depth) {
      const value all =
          b.input("past_" + name, t, {2, 3, 70, depth}).concat(b.input(name, t, {2, 3, queries, depth}), 2);
      b.output(all);
      dims lens = scale;
      if (!lens.empty() && !(lens[3] == dimension(1))) lens[3] = depth;
      const value wide = all.convert(dtype::f32);
      return lens.empty() ? wide : wide * b.input(name + "_scale", dtype::f32, lens);
    };
    const value k = cached("k", 24), v = cached("v", 40);
    b.output(q.attention(k, v, {.scale = .2F, .causal = true}));
  };
}

std::size_t attentions_over(const executable& e, dtype t) {
  std::size_t n = 0;
  for (const step_info& s : e.report().steps) n += s.kernel == "attention over " + std::string(to_string(t));
  return n;
}

TEST(stored_floats, caches_are_read_as_they_are_stored) {
  for (const dtype t : {dtype::f16, dtype::bf16, dtype::i8, dtype::f8e4m3fn, dtype::f8e5m2})
    for (const dims& scale : {dims{}, dims{1, 1, 1, 1}, dims{1, 3, 1, 24}})
      for (const std::int64_t queries : {1, 9}) {
        SCOPED_TRACE(::testing::Message() << to_string(t) << ", " << queries << " queries");
        const auto make = step(t, queries, scale);
        expect_same(make, tolerance{5e-5, 2e-5});
        EXPECT_EQ(attentions_over(compile_eigen(make), t), 1u);
      }
}

// A scale for each key would have to be read with it.
TEST(stored_floats, scales_of_single_keys_stay_a_step) {
  const auto make = step(dtype::i8, 1, {1, 1, 71, 1});
  expect_same(make, tolerance{5e-5, 2e-5});
  EXPECT_EQ(attentions_over(compile_eigen(make), dtype::i8), 0u);
}

}  // namespace
}  // namespace kiln::testing
