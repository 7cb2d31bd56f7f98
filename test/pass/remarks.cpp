// Rewrites that change a float's NaN, infinity, signed zero or rounding say so; others say nothing.
#include <gmock/gmock.h>

#include <functional>

#include "kiln/graph/builder.hpp"
#include "kiln/pass/passes.hpp"

namespace kiln {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> remarks_on(const std::function<void(builder&)>& make) {
  builder b;
  make(b);
  program p = b.finish();
  std::vector<std::string> out;
  for (const pass_note& n : optimize_graph(p))
    for (const text& t : n.remarks) out.push_back(t.str());
  return out;
}

TEST(remarks, say_what_a_rewrite_changes_for_floats) {
  const auto of = [](dtype t, const std::function<value(value, builder&)>& make) {
    return remarks_on([&](builder& b) { b.output(make(b.input("x", t, {2, 3}), b)); });
  };
  const auto plus_zero = [](value x, builder& b) { return x + b.scalar(x.type(), 0.0); };
  EXPECT_THAT(of(dtype::f32, plus_zero), Contains(HasSubstr("x + 0")));
  EXPECT_THAT(of(dtype::i32, plus_zero), IsEmpty());
  const auto zero_minus = [](value x, builder& b) { return b.scalar(x.type(), 0.0) - x; };
  EXPECT_THAT(of(dtype::f32, zero_minus), Contains(HasSubstr("0 - x")));
  EXPECT_THAT(of(dtype::i32, zero_minus), IsEmpty());
  EXPECT_THAT(of(dtype::f32, [](value x, builder& b) { return x.pow(b.scalar(x.type(), 0.5)); }),
              Contains(HasSubstr("sqrt(x)")));
  EXPECT_THAT(of(dtype::f32, [](value x, builder& b) { return x.pow(b.scalar(x.type(), 2.0)); }), IsEmpty());
  EXPECT_THAT(of(dtype::f32, [](value x, builder& b) { return x * b.scalar(x.type(), 3.0) * b.scalar(x.type(), 0.7); }),
              Contains(HasSubstr("x * c")));
  EXPECT_THAT(of(dtype::f32, [](value x, builder& b) { return x + b.scalar(x.type(), 3.0) + b.scalar(x.type(), 0.7); }),
              Contains(HasSubstr("x + c")));
  EXPECT_THAT(of(dtype::f32,
                 [](value x, builder&) { return x.slice({.axes = {1}, .starts = {0}, .ends = {1}}).reduce_sum({1}); }),
              Contains(HasSubstr("one element")));
  EXPECT_THAT(of(dtype::f32, [](value x, builder& b) { return (x * b.scalar(x.type(), 1.0)).relu(); }), IsEmpty());
}

TEST(remarks, attention_says_what_becomes_of_rows_that_see_nothing) {
  const auto attend = [](bool masked) {
    return remarks_on([&](builder& b) {
      const value q = b.input("q", dtype::f32, {1, 2, 4, 8}), k = b.input("k", dtype::f32, {1, 2, 4, 8}),
                  v = b.input("v", dtype::f32, {1, 2, 4, 8});
      value s = q.dot(k.transpose({0, 1, 3, 2}));
      if (masked) s = s + b.input("mask", dtype::f32, {1, 2, 4, 4});
      b.output(s.softmax(3).dot(v));
    });
  };
  EXPECT_THAT(attend(true), Contains(HasSubstr("all -inf")));
  EXPECT_THAT(attend(false), IsEmpty());
}

}  // namespace
}  // namespace kiln
