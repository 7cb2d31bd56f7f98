// Products of few rows by constant weights, as they are and as they are stored in blocks, beside the ops' own
// computations, where there is a device.
#include "hip_kernels/on_device.hpp"
#include "kiln/op/more.hpp"

namespace kiln::testing {
namespace {

class weights_on_device : public tile_kernels_on_device {
 protected:
  static value constant(builder& b, const shape& s) { return b.constant(literal(s, constant_bytes(s))); }
  struct sizes {
    std::int64_t n, k;
  };
  // `weights(b, sizes)` are n x k
  template <class Weights> void check_rows(Weights weights, std::initializer_list<sizes> all) {
    for (const std::int64_t rows : {1, 5, 13, 29})
      for (const sizes z : all) {
        SCOPED_TRACE(std::to_string(rows) + " rows by " + std::to_string(z.n) + " x " + std::to_string(z.k));
        check([&](builder& b) {
          const value x = b.input("x", GetParam(), {rows, z.k}) * b.scalar(GetParam(), 0.125f);
          const value y = x.dot(weights(b, z).transpose({1, 0})) + b.input("bias", GetParam(), {z.n});
          b.output(y.relu() + b.input("r", GetParam(), {rows, z.n}));
        });
      }
  }
};

TEST_P(weights_on_device, numbers_as_they_are) {
  const auto weights = [&](builder& b, const sizes& z) { return constant(b, {GetParam(), {z.n, z.k}}); };
  check_rows(weights, {{256, 72}, {1000, 520}, {2052, 1096}, {4096, 256}});
}
TEST_P(weights_on_device, numbers_in_blocks) {
  const dtype t = GetParam();
  if (t == dtype::f32) GTEST_SKIP() << "weights of products of 16-bit floats";
  for (const std::int64_t bits : {4, 8})
    for (const std::int64_t block : {32, 128}) {
      SCOPED_TRACE(std::to_string(bits) + " bits, blocks of " + std::to_string(block));
      const auto weights = [&](builder& b, const sizes& z) {
        const value small = constant(b, {t, {z.n, z.k / block}});
        return b.add(op::block_dequantize{.bits = bits, .axis = 1, .block = block, .zero = bits == 4 ? 8 : 0},
                     constant(b, {bits == 4 ? dtype::u8 : dtype::i8, {z.n, z.k * bits / 8}}), small) *
               b.scalar(t, 0.0625f);
      };
      check_rows(weights, {{256, 256}, {1000, 640}, {2052, 1152}});
    }
}

INSTANTIATE_TEST_SUITE_P(dtypes, weights_on_device, ::testing::Values(dtype::f16, dtype::bf16, dtype::f32),
                         [](const auto& at) { return std::string(to_string(at.param)); });

}  // namespace
}  // namespace kiln::testing
