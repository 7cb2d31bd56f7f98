#include "kiln/pass/quantize_before_views.hpp"

#include "kiln/pass/dead_code.hpp"
#include "kiln/pass/fuse_contraction.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

value bytes_of(builder& b, value x) {
  const value y = (x / .5F | op::round{}) + 128.F;
  return b.add(op::clip{}, y, b.scalar(dtype::f32, 0.F), b.scalar(dtype::f32, 255.F)).convert(dtype::u8);
}
value product_of(builder& b) { return b.input("x", dtype::f32, {2, 3, 4}).dot(b.input("w", dtype::f32, {2, 4, 6})); }

template <class Build> program rewritten(Build build, bool moves) {
  program p = built<builder>(build);
  EXPECT_EQ(quantize_before_views(p).changed(), moves) << print(p).view();
  dead_code(p);
  verify(p);
  EXPECT_TRUE(same_results(built<builder>(build), p, 0)) << print(p).view();
  return p;
}

TEST(quantize_before_views, a_product_ends_in_bytes) {
  program p = rewritten(
      [](builder& b) {
        b.output(bytes_of(b, product_of(b).reshape({2, 3, 2, 3}).transpose({0, 2, 1, 3})));
      },
      true);
  fuse_contraction(p);
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    if (p.main()[i].kind == instruction_kind::op && p.main()[i].op.is<op::fused>()) {
      EXPECT_EQ(p.main()[i].results[0].type, dtype::u8);
    }
}

TEST(quantize_before_views, what_would_be_more_work_stays) {
  rewritten([](builder& b) { b.output(bytes_of(b, product_of(b))); }, false);  // nothing to pass
  rewritten([](builder& b) { b.output(bytes_of(b, product_of(b).slice(2, 1, 3))); }, false);
  rewritten([](builder& b) { b.output(bytes_of(b, b.input("x", dtype::f32, {2, 1}).broadcast_to({2, 5}))); }, false);
  rewritten(  // the floats are read as well
      [](builder& b) {
        const value y = product_of(b).transpose({0, 2, 1});
        b.output(y);
        b.output(bytes_of(b, y));
      },
      false);
  rewritten(  // more than a number beside the floats
      [](builder& b) {
        b.output(bytes_of(b, product_of(b).transpose({0, 2, 1}) + b.input("b", dtype::f32, {2, 6, 3})));
      },
      false);
}

}  // namespace
}  // namespace kiln::test
