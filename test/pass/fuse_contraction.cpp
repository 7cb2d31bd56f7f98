#include "kiln/pass/fuse_contraction.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/fuse_pointwise.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

constexpr auto fuse = [](graph& p) { fuse_contraction(p); };
constexpr auto fuse_all = [](graph& p) {
  fuse_contraction(p);
  fuse_pointwise(p);
};

// erf form of gelu: the bias sum is read twice inside
constexpr auto layer = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 8});
  const node y = x.dot(b.weight("w", dtype::f32, {8, 8})) + b.weight("c", dtype::f32, {8});
  b.output(y * ((y / 1.41421356f).erf() + 1.0f) * 0.5f + x);
};
static_assert(kernel_count(after(layer, fuse)) == 1);

constexpr auto conv_bn_relu = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {1, 3, 6, 6}), w = b.weight("w", dtype::f32, {3, 3, 3, 3});
  const node y = x.conv(w, {.pads = {1, 1, 1, 1}});
  const node scale = b.weight("scale", dtype::f32, {3}), bias = b.weight("bias", dtype::f32, {3});
  b.output((y * y.make_along(1, scale) + y.make_along(1, bias) + x).relu());
};
constexpr std::string_view conv_text = R"(main:
  %0 = x : f32[1, 3, 6, 6]
  %1 = @w : f32[3, 3, 3, 3]
  %2 = @scale : f32[3]
  %3 = @bias : f32[3]
  %4 = broadcast{axis = 1, to = [1, 3, 6, 6]}(%2) : f32[1, 3, 6, 6]
  %5 = broadcast{axis = 1, to = [1, 3, 6, 6]}(%3) : f32[1, 3, 6, 6]
  %6 = fused{kind = contraction, body = @1}(%0, %1, %4, %5) : f32[1, 3, 6, 6]
  return output_0 = %6
)";
static_assert(print(after(conv_bn_relu, fuse)).view().substr(0, conv_text.size()) == conv_text);

// gate and up projections meet: the later product takes the rest
constexpr auto swiglu = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 8});
  const node gate = x.dot(b.weight("g", dtype::f32, {8, 4})), up = x.dot(b.weight("u", dtype::f32, {8, 4}));
  b.output(gate.silu() * up);
};
static_assert(kernel_count(after(swiglu, fuse)) == 2);

// the sum is read by a running sum as well, whose result comes back: the chain stops at the sum
constexpr auto stops = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 8});
  const node y = x.dot(b.weight("w", dtype::f32, {8, 8})) + x;
  b.output(y.relu() + b.add(op::cumsum{}, y));
};
static_assert(kernel_count(after(stops, fuse)) == 3 + 1);  // relu and the last sum are not fused by this pass
static_assert(kernel_count(after(stops, fuse_all)) == 3);

// one result: the activation would be a second one, so that only the sum joins
constexpr auto both_read = [](graph_builder& b) {
  const node y = b.input("x", dtype::f32, {4, 8}).dot(b.weight("w", dtype::f32, {8, 8})) + 1.0f;
  b.output(y);
  b.output(y.relu());
};
static_assert(kernel_count(after(both_read, fuse)) == 2);

constexpr auto bare = [](graph_builder& b) {
  b.output(b.input("x", dtype::f32, {4, 8}).dot(b.weight("w", dtype::f32, {8, 8})));
};
static_assert(fused_count(after(bare, fuse_all), fusion::contraction) == 0);

// other dims do not join
constexpr auto widened = [](graph_builder& b) {
  const node y = b.input("x", dtype::f32, {1, 8}).dot(b.weight("w", dtype::f32, {8, 8}));
  b.output(y.broadcast_to({4, 8}) + b.input("z", dtype::f32, {4, 8}));
};
static_assert(kernel_count(after(widened, fuse)) == 2);

// rows of 16-bit floats that are normalized in f32: the product's result stays narrow, and the rows widen it
constexpr auto wide_rows = [](graph_builder& b) {
  const node x = b.input("x", dtype::f16, {4, 8});
  const node y = (x.dot(b.weight("w", dtype::f16, {8, 8})) + x).convert(dtype::f32);
  b.output(y - y.reduce_mean({-1}));
};
// a result that others read wide is written so
constexpr auto wide_result = [](graph_builder& b) {
  const node x = b.input("x", dtype::f16, {4, 8});
  const node y = (x.dot(b.weight("w", dtype::f16, {8, 8})) + x).convert(dtype::f32);
  b.output(y - y.reduce_mean({-1}));
  b.output(y);
};
// and so is what nothing sums
constexpr auto wide_values = [](graph_builder& b) {
  const node x = b.input("x", dtype::f16, {4, 8});
  b.output((x.dot(b.weight("w", dtype::f16, {8, 8})) + x).convert(dtype::f32).exp().reduce_mean({-1}));
};
// by columns as by rows
constexpr auto wide_columns = [](graph_builder& b) {
  const node x = b.input("x", dtype::f16, {4, 8});
  const node y = (x.dot(b.weight("w", dtype::f16, {8, 8})) + x).convert(dtype::f32);
  b.output(y - y.reduce_mean({0}));
};
// a conversion to as many bits, or fewer, is the product's
constexpr auto as_wide_rows = [](graph_builder& b) {
  const node x = b.input("x", dtype::f16, {4, 8});
  b.output((x.dot(b.weight("w", dtype::f16, {8, 8})) + x).convert(dtype::bf16).reduce_mean({-1}));
};
constexpr auto narrower_rows = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 8});
  b.output((x.dot(b.weight("w", dtype::f32, {8, 8})) + x).convert(dtype::f16).reduce_mean({-1}));
};
// a view as well as a reduction reads it: it is written wide
constexpr auto viewed_rows = [](graph_builder& b) {
  const node x = b.input("x", dtype::f16, {4, 8});
  const node y = (x.dot(b.weight("w", dtype::f16, {8, 8})) + x).convert(dtype::f32);
  b.output(y.reduce_mean({-1}));
  b.output(y.transpose({1, 0}));
};
// the one that reads it is part of a later product
constexpr auto taken_rows = [](graph_builder& b) {
  const node x = b.input("x", dtype::f16, {4, 8});
  const node y = (x.dot(b.weight("w", dtype::f16, {8, 8})) + x).convert(dtype::f32);
  const node z = b.input("z", dtype::f32, {4, 8}).dot(b.weight("v", dtype::f32, {8, 8}));
  b.output(y + z);
  b.output(y.reduce_mean({-1}));
};
constexpr dtype result_of_product(const graph& p) {
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    if (p.main()[i].kind == instruction_kind::op)
      if (const auto* f = p.main()[i].op.get_if<op::fused>(); f && f->kind == fusion::contraction)
        return p.main()[i].results[0].type;
  return dtype::boolean;
}
static_assert(result_of_product(after(wide_rows, fuse)) == dtype::f16);
static_assert(result_of_product(after(wide_result, fuse)) == dtype::f32);
static_assert(result_of_product(after(wide_values, fuse)) == dtype::f32);
static_assert(result_of_product(after(wide_columns, fuse)) == dtype::f16);
static_assert(result_of_product(after(as_wide_rows, fuse)) == dtype::bf16);
static_assert(result_of_product(after(narrower_rows, fuse)) == dtype::f16);
static_assert(result_of_product(after(viewed_rows, fuse)) == dtype::f32);
static_assert(result_of_product(after(taken_rows, fuse)) == dtype::f32);

TEST(fuse_contraction, keeps_the_meaning) {
  const auto check = [](auto build) {
    const graph p = after(build, fuse_all);
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
    EXPECT_LE(difference(made_by(build), p), 1e-6) << print(p).view();
  };
  check(layer);
  check(conv_bn_relu);
  check(swiglu);
  check(stops);
  check(both_read);
  check(bare);
  check(widened);
  check(wide_rows);
  check(wide_result);
  check(wide_values);
  check(wide_columns);
  check(as_wide_rows);
  check(narrower_rows);
  check(viewed_rows);
  check(taken_rows);
}

TEST(fuse_contraction, the_later_product_takes_the_meeting_point) {
  const graph p = after(swiglu, fuse);
  std::size_t products = 0;
  for (std::uint32_t k = 1; k < p.modules(); ++k)
    for (std::uint32_t i = 0; i < p.module({k}).size(); ++i)
      products += p.module({k})[i].kind == instruction_kind::op && p.module({k})[i].op.is<op::mul>();
  EXPECT_EQ(products, 2u);
  EXPECT_EQ(fused_count(p, fusion::contraction), 2u);
}

}  // namespace
}  // namespace kiln::test
