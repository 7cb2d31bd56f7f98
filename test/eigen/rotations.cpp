// Bodies that rotate pairs of values, in compiled loops over rows, against the reference.
#include <gmock/gmock.h>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "pass/rotary_row.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

// A rotary embedding, and a norm before it, run level by level over several rows, whichever way they are spelled.
TEST(rotations, rotary_embeddings_are_compiled_loops) {
  const auto is_one_loop = [](auto make) {
    const executable e = compile_eigen(make, {});
    EXPECT_EQ(e.report().steps.size(), 1u);
    const auto& m = e.optimized().main();
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      const auto* fused = m[i].kind == instruction_kind::op ? m[i].op.template get_if<op::fused>() : nullptr;
      if (!fused) continue;
      const eigen::tile_program body(e.optimized().module(fused->body));
      ASSERT_NE(body.blocks(), nullptr);
      EXPECT_TRUE(body.blocks()->compiled());
    }
  };
  is_one_loop([](builder& b) { kiln::test::rms_norm_and_rotary(b, dtype::f32, 128); });
  is_one_loop([](builder& b) { kiln::test::rms_norm_and_rotate_half(b, dtype::f32, 128); });
  for (const std::int64_t depth : {6, 64, 128, 136}) {  // tasks end within the rows that share factors
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {9, 40, depth}), cos = b.input("cos", dtype::f32, {40, depth}),
                  sin = b.input("sin", dtype::f32, {40, depth});
      const auto half = [&](value of, int k) { return kiln::test::last_axis(of, k * depth / 2, (k + 1) * depth / 2); };
      b.output(x * cos + (-half(x, 1)).concat(half(x, 0), 2) * sin);
    };
    is_one_loop(make);
    expect_same(make, {1e-6, 1e-6});
    for (const dtype t : {dtype::f32, dtype::f16, dtype::bf16}) {  // whose products and sums are rounded as there
      const auto narrow = [&](builder& b) {
        const value x = b.input("x", t, {9, 40, depth}), cos = b.input("cos", t, {40, depth / 2}),
                    sin = b.input("sin", t, {40, depth / 2});
        const value a = kiln::test::last_axis(x, 0, depth / 2), c = kiln::test::last_axis(x, depth / 2, depth);
        b.output((a * cos - c * sin).concat(a * sin + c * cos, 2));
      };
      is_one_loop(narrow);
      expect_same(narrow, {0, 0});
    }
  }
}

// Products of the same form, of which some make a rotation.
TEST(rotations, products_of_their_form) {
  for (const std::int64_t depth : {16, 33, 70, 136})
    for (const int form : {0, 1, 2, 3, 4, 5, 6}) {
      SCOPED_TRACE(::testing::Message() << depth << ", form " << form);
      expect_same(
          [&](builder& b) {
            const auto input = [&](const char* name) { return b.input(name, dtype::f32, {5, 40, depth}); };
            const value x = input("x"), y = input("y"), z = input("z"), p = input("p"), q = input("q"), r = input("r");
            const value first = form == 2 ? p * x - q * y : form == 6 ? x * x - y * y : x * p - y * q;
            const value second[] = {x * q + y * p, y * p + x * q, r * x + z * y, x * r + z * q,
                                    z * r + x * q, x * p + y * q, x * y + y * x};
            b.output(first.concat(second[form], 2));
          },
          {0, 0});
    }
}

}  // namespace
}  // namespace kiln::testing
