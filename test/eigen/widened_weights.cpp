// Large weights of 16 bits that a program widens to f32 are packed as they are stored: f32 of them is never written.
#include <gmock/gmock.h>

#include "eigen/saved_program.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

constexpr tolerance close{3e-5, 3e-5};

value stored(builder& b, dtype t, const dims& lens, unsigned seed = 9) {
  return b.constant(random_argument({t, lens}, seed, -.5, .5).to_literal());
}
std::vector<std::string> kernels_of(const std::function<void(builder&)>& make) {
  std::vector<std::string> out;
  const executable e = compile_eigen(make);
  for (const step_info& s : e.report().steps) out.push_back(s.kernel);
  return out;
}

class widened_weights : public saved_program_files {};

// [outputs, inputs] as files have them, and [inputs, outputs]; extents that are no whole panels or tasks; a part of the
// constant, from an odd element on.
TEST_F(widened_weights, are_packed_as_they_are_stored) {
  for (const dtype t : {dtype::f16, dtype::bf16})
    for (const int form : {0, 1, 2}) {
      const std::int64_t rows = (t == dtype::f16) == (form == 1) ? 5 : 1;
      SCOPED_TRACE(::testing::Message() << to_string(t) << ", " << rows << " rows, form " << form);
      const auto make = [&](builder& b) {
        const value x = b.input("x", dtype::f32, {rows, 717});
        const value w = form == 0   ? stored(b, t, {901, 717}).convert(dtype::f32).transpose({1, 0})
                        : form == 1 ? stored(b, t, {717, 901}).convert(dtype::f32)
                                    : stored(b, t, {903, 723})
                                          .convert(dtype::f32)
                                          .slice({.axes = {0, 1}, .starts = {2, 5}, .ends = {903, 722}})
                                          .transpose({1, 0});
        b.output((x.dot(w) + b.input("bias", dtype::f32, {901})).relu());
      };
      expect_same(make, close);
      const auto kernels = kernels_of(make);
      ASSERT_EQ(kernels.size(), 1u) << "the conversion is no step";
      EXPECT_THAT(kernels[0], HasSubstr("packed, " + std::string(to_string(t))));
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST_F(widened_weights, are_the_same_in_a_saved_program) {
  for (const dtype t : {dtype::f16, dtype::bf16})
    expect_same_again([&](builder& b) {
      const value x = b.input("x", dtype::f32, {3, 700});
      const value y = x.dot(stored(b, t, {1000, 700}).convert(dtype::f32).transpose({1, 0})).relu();
      b.output(y.dot(stored(b, t, {1000, 700}, 10).convert(dtype::f32)) + b.constant(weights({700})));
    });
}

// What is read as itself too is computed once, as other constants.
TEST_F(widened_weights, that_other_steps_read_are_folded) {
  const auto make = [](builder& b) {
    const value w = stored(b, dtype::f16, {800, 900}).convert(dtype::f32);
    b.output(b.input("x", dtype::f32, {2, 800}).dot(w));
    b.output(w.reduce_sum({0}));
  };
  expect_same(make, tolerance{1e-4, 1e-3});
}

// Products whose matrices differ in the batch, or that are left operands, are not packed so: they read f32.
TEST_F(widened_weights, of_other_products_are_widened_once) {
  const auto make = [](builder& b) {
    b.output(b.input("x", dtype::f32, {3, 2, 400}).dot(stored(b, dtype::bf16, {3, 400, 500}).convert(dtype::f32)));
    b.output(stored(b, dtype::f16, {900, 800}).convert(dtype::f32).dot(b.input("y", dtype::f32, {800, 2})));
  };
  expect_same(make, close);
  for (const std::string& kernel : kernels_of(make)) EXPECT_THAT(kernel, ::testing::StartsWith("dot"));
}

// Query, key and value of one input become one product, whose weights lie side by side in 16 bits.
TEST_F(widened_weights, of_one_input_are_joined) {
  for (const bool turned : {false, true}) {
    SCOPED_TRACE(turned ? "[outputs, inputs]" : "[inputs, outputs]");
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {1, 9, 720});
      unsigned seed = 0;
      for (const std::int64_t heads : {12, 15, 13}) {
        const value w = stored(b, dtype::f16, turned ? dims{heads * 64, 720} : dims{720, heads * 64}, ++seed);
        b.output(x.dot(turned ? w.convert(dtype::f32).transpose({1, 0}) : w.convert(dtype::f32))
                     .reshape({1, 9, heads, 64})
                     .transpose({0, 2, 1, 3})
                     .reduce_max({3}));
      }
    };
    expect_same(make, close);
    std::size_t products = 0;
    for (const std::string& kernel : kernels_of(make)) products += kernel == "dot (packed, f16)";
    EXPECT_EQ(products, 1u);
  }
}

}  // namespace
}  // namespace kiln::testing
